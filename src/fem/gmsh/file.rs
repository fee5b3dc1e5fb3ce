//! What is in a Gmsh file, of either version.

use std::collections::HashMap;

use super::input::{Form, Input};
use super::kind::Kind;
use crate::error::Result;

/// Nodes, elements and names as a file has them.
#[derive(Debug, Default)]
pub(super) struct File {
    /// By dimensions and number of the physical group.
    pub(super) names: HashMap<(usize, i64), String>,
    /// Numbers of nodes, and where they are.
    pub(super) nodes: Vec<(u64, [f64; 3])>,
    /// Elements, at least one each.
    pub(super) blocks: Vec<Block>,
    /// Physical groups of geometrical entities, by dimensions and number: version 4.
    pub(super) entities: HashMap<(usize, i64), Vec<i64>>,
}

/// Elements of the same shape and entity.
#[derive(Debug, PartialEq)]
pub(super) struct Block {
    pub(super) kind: Kind,
    /// Of the curve, surface or volume that they are on.
    pub(super) entity: i64,
    /// Physical groups.
    pub(super) groups: Vec<i64>,
    pub(super) numbers: Vec<u64>,
    /// Numbers of nodes, those of one element after the other.
    pub(super) nodes: Vec<u64>,
}

impl File {
    /// Reads a file.
    pub(super) fn read(bytes: &[u8]) -> Result<Self> {
        let mut input = Input::new(bytes);
        if input.section().ok().flatten() != Some("MeshFormat") {
            return Err(Input::new(bytes).error("this is no Gmsh file: it should begin with $MeshFormat"));
        }
        let is_new = head(&mut input)?;
        let (mut file, mut has) = (Self::default(), [false; 2]);
        while let Some(name) = input.section()? {
            match name {
                "PhysicalNames" => input.with_text(|input| file.read_names(input))?,
                "Entities" if is_new => file.read_entities(&mut input)?,
                "PartitionedEntities" => {
                    return Err(input.error("a mesh in partitions is not read: save it without them"));
                }
                "Nodes" => file.read_nodes(&mut input, is_new)?,
                "Elements" if is_new => file.read_elements(&mut input)?,
                "Elements" => file.read_old_elements(&mut input)?,
                _ => {
                    input.skip(name)?;
                    continue;
                }
            }
            has[0] |= name == "Nodes";
            has[1] |= name == "Elements";
            input.end(name)?;
        }
        match ["Nodes", "Elements"].iter().zip(has).find(|(_, has)| !has) {
            Some((name, _)) => Err(input.error(format!("the file ends without a section ${name}"))),
            None => Ok(file),
        }
    }

    fn read_names(&mut self, input: &mut Input<'_>) -> Result<()> {
        let count = input.size()?;
        for _ in 0..input.count(count)? {
            let (dimension, number) = (input.size()?, input.int()?);
            self.names.insert((dimension as usize, number), input.quoted()?);
        }
        Ok(())
    }

    fn read_entities(&mut self, input: &mut Input<'_>) -> Result<()> {
        begin(input)?;
        let counts = [input.size()?, input.size()?, input.size()?, input.size()?];
        for (dimension, count) in counts.into_iter().enumerate() {
            for _ in 0..input.count(count)? {
                let entity = input.int()?;
                for _ in 0..if dimension == 0 { 3 } else { 6 } {
                    input.real()?;
                }
                let groups = input.size()?;
                let groups: Vec<i64> =
                    (0..input.count(groups)?).map(|_| Ok(input.int()?.abs())).collect::<Result<_>>()?;
                self.entities.insert((dimension, entity), groups);
                if dimension > 0 {
                    let bounds = input.size()?;
                    for _ in 0..input.count(bounds)? {
                        input.int()?;
                    }
                }
            }
        }
        Ok(())
    }

    fn read_nodes(&mut self, input: &mut Input<'_>, is_new: bool) -> Result<()> {
        if !is_new {
            let count = input.with_text(Input::size)?;
            begin(input)?;
            for _ in 0..input.count(count)? {
                let number = input.int()?;
                let number = u64::try_from(number).map_err(|_| input.error(format!("{number} is no node's number")))?;
                self.nodes.push((number, [input.real()?, input.real()?, input.real()?]));
            }
            return Ok(());
        }
        begin(input)?;
        let blocks = input.size()?;
        for _ in 0..3 {
            input.size()?;
        }
        for _ in 0..input.count(blocks)? {
            let (dimension, _, is_parametric) = (input.int()?, input.int()?, input.int()?);
            let count = input.size()?;
            let count = input.count(count)?;
            let numbers: Vec<u64> = (0..count).map(|_| input.size()).collect::<Result<_>>()?;
            for number in numbers {
                self.nodes.push((number, [input.real()?, input.real()?, input.real()?]));
                for _ in 0..if is_parametric == 0 { 0 } else { dimension } {
                    input.real()?;
                }
            }
        }
        Ok(())
    }

    fn read_elements(&mut self, input: &mut Input<'_>) -> Result<()> {
        begin(input)?;
        let blocks = input.size()?;
        for _ in 0..3 {
            input.size()?;
        }
        for _ in 0..input.count(blocks)? {
            let (dimension, entity) = (input.int()?, input.int()?);
            let kind = kind(input)?;
            let count = input.size()?;
            let (mut numbers, mut nodes) = (Vec::new(), Vec::new());
            for _ in 0..input.count(count)? {
                numbers.push(input.size()?);
                for _ in 0..kind.nodes {
                    nodes.push(input.size()?);
                }
            }
            if numbers.is_empty() {
                continue;
            }
            let groups = self.entities.get(&(dimension as usize, entity)).cloned().unwrap_or_default();
            self.blocks.push(Block { kind, entity, groups, numbers, nodes });
        }
        Ok(())
    }

    fn read_old_elements(&mut self, input: &mut Input<'_>) -> Result<()> {
        let count = input.with_text(Input::size)?;
        begin(input)?;
        let (count, mut read) = (input.count(count)?, 0);
        while read < count {
            // in text each element says what it is, in binary a run of them does
            let (mut number, mut run) = (None, 1);
            if input.form == Form::Text {
                number = Some(input.int()?);
            }
            let kind = kind(input)?;
            if input.form != Form::Text {
                let of_run = input.int()?;
                run = usize::try_from(of_run).ok().filter(|run| (1..=count - read).contains(run)).ok_or_else(|| {
                    input.error(format!("a run of {of_run} elements, where {} of {count} are missing", count - read))
                })?;
            }
            let tags = input.int()?;
            for _ in 0..run {
                let number = number.map_or_else(|| input.int(), Ok)?;
                let tags: Vec<i64> = (0..tags).map(|_| input.int()).collect::<Result<_>>()?;
                let nodes: Vec<i64> = (0..kind.nodes).map(|_| input.int()).collect::<Result<_>>()?;
                self.push(kind, number, &tags, &nodes);
            }
            read += run;
        }
        Ok(())
    }

    /// Adds an element, to the last block if it is of its kind.
    fn push(&mut self, kind: Kind, number: i64, tags: &[i64], nodes: &[i64]) {
        let entity = tags.get(1).copied().unwrap_or(0);
        let groups: Vec<i64> = tags.first().map(|group| group.abs()).filter(|group| *group != 0).into_iter().collect();
        let is_last = |last: &&mut Block| last.kind == kind && last.entity == entity && last.groups == groups;
        if self.blocks.last_mut().filter(is_last).is_none() {
            self.blocks.push(Block { kind, entity, groups, numbers: Vec::new(), nodes: Vec::new() });
        }
        if let Some(last) = self.blocks.last_mut() {
            last.numbers.push(number.unsigned_abs());
            last.nodes.extend(nodes.iter().map(|node| node.unsigned_abs()));
        }
    }
}

/// Version and form, up to the end of that section; whether it is version 4.1.
fn head(input: &mut Input<'_>) -> Result<bool> {
    let version = input.word()?;
    let is_new = match version {
        "4.1" => true,
        "2.2" => false,
        _ => {
            return Err(input.error(format!(
                "version '{version}' is not read; versions 4.1 and 2.2 are: save it by gmsh -format msh41"
            )));
        }
    };
    let (form, size) = (input.int()?, input.int()?);
    if !matches!((form, size), (0 | 1, 8)) {
        return Err(input.error(format!(
            "file type {form} with numbers of {size} bytes is not read; 0 (text) or 1 (binary), and 8 are"
        )));
    }
    if form == 1 {
        input.end_line()?;
        input.form = Form::Binary { swapped: false };
        input.form = match input.int()? {
            1 => Form::Binary { swapped: false },
            0x0100_0000 => Form::Binary { swapped: true },
            other => return Err(input.error(format!("the mark of the order of bytes should be 1, not {other}"))),
        };
    }
    input.end("MeshFormat")?;
    Ok(is_new)
}

/// Goes to the data of a section, which in a binary file begin on the next line.
fn begin(input: &mut Input<'_>) -> Result<()> {
    if input.form == Form::Text { Ok(()) } else { input.end_line() }
}

/// The number of a shape.
fn kind(input: &mut Input<'_>) -> Result<Kind> {
    let number = input.int()?;
    Kind::of(number).ok_or_else(|| input.error(format!("elements of type {number} are not known")))
}
