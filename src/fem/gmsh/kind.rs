//! The shapes of elements that Gmsh knows, by their numbers.

use crate::fem::cell::Cell;

/// A shape.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Kind {
    pub(super) number: i64,
    pub(super) name: &'static str,
    pub(super) dimension: usize,
    pub(super) nodes: usize,
}

impl Kind {
    /// The shape of a number, if it is known.
    pub(super) fn of(number: i64) -> Option<Self> {
        let row = KINDS.iter().find(|(of, ..)| *of == number);
        row.map(|&(number, name, dimension, nodes)| Self { number, name, dimension, nodes })
    }

    /// The same as the element of a mesh, if it can be that.
    pub(super) fn cell(self) -> Option<Cell> {
        match self.number {
            2 => Some(Cell::Triangle3),
            4 => Some(Cell::Tetrahedron4),
            9 => Some(Cell::Triangle6),
            11 => Some(Cell::Tetrahedron10),
            _ => None,
        }
    }

    /// The number of the shape of sides of such elements.
    pub(super) fn facet_of(cell: Cell) -> i64 {
        match cell {
            Cell::Triangle3 => 1,
            Cell::Triangle6 => 8,
            Cell::Tetrahedron4 => 2,
            Cell::Tetrahedron10 => 9,
        }
    }
}

/// Number, name, dimensions and nodes: Gmsh's manual, "MSH file format".
const KINDS: [(i64, &str, usize, usize); 31] = [
    (1, "2-node line", 1, 2),
    (2, "3-node triangle", 2, 3),
    (3, "4-node quadrangle", 2, 4),
    (4, "4-node tetrahedron", 3, 4),
    (5, "8-node hexahedron", 3, 8),
    (6, "6-node prism", 3, 6),
    (7, "5-node pyramid", 3, 5),
    (8, "3-node line", 1, 3),
    (9, "6-node triangle", 2, 6),
    (10, "9-node quadrangle", 2, 9),
    (11, "10-node tetrahedron", 3, 10),
    (12, "27-node hexahedron", 3, 27),
    (13, "18-node prism", 3, 18),
    (14, "14-node pyramid", 3, 14),
    (15, "point", 0, 1),
    (16, "8-node quadrangle", 2, 8),
    (17, "20-node hexahedron", 3, 20),
    (18, "15-node prism", 3, 15),
    (19, "13-node pyramid", 3, 13),
    (20, "9-node triangle", 2, 9),
    (21, "10-node triangle", 2, 10),
    (22, "12-node triangle", 2, 12),
    (23, "15-node triangle", 2, 15),
    (24, "15-node triangle", 2, 15),
    (25, "21-node triangle", 2, 21),
    (26, "4-node line", 1, 4),
    (27, "5-node line", 1, 5),
    (28, "6-node line", 1, 6),
    (29, "20-node tetrahedron", 3, 20),
    (30, "35-node tetrahedron", 3, 35),
    (31, "56-node tetrahedron", 3, 56),
];
