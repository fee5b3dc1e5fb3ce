//! Files of Gmsh as it writes them, made by hand, and broken.

use super::*;

/// Two triangles that face up, and a line, in a file of version 2.2.
const TWO: &str = "$MeshFormat
2.2 0 8
$EndMeshFormat
$Comments
anything at all
$EndComments
$PhysicalNames
2
1 5 \"lower side\"
2 6 \"wood\"
$EndPhysicalNames
$Nodes
5
10 0 0 0
20 1 0 0
25 7 7 7
30 1 1 0
40 0 1 0
$EndNodes
$Elements
4
1 15 2 0 1 10
2 1 2 5 1 10 20
3 2 2 6 1 10 20 30
4 2 2 0 1 10 30 40
$EndElements
";

/// The same in version 4.1.
const TWO_NEW: &str = "$MeshFormat
4.1 0 8
$EndMeshFormat
$PhysicalNames
2
1 5 \"lower side\"
2 6 \"wood\"
$EndPhysicalNames
$Entities
1 1 2 0
1 0 0 0 0
1 0 0 0 1 0 0 1 -5 2 1 2
1 0 0 0 1 1 0 1 6 1 1
2 0 0 0 1 1 0 0 1 1
$EndEntities
$Nodes
2 5 10 40
1 1 1 2
10
20
0 0 0 0.5
1 0 0 0.75
2 1 0 3
25
30
40
7 7 7
1 1 0
0 1 0
$EndNodes
$Elements
4 4 1 4
0 1 15 1
1 10
1 1 1 1
2 10 20
2 1 2 1
3 10 20 30
2 2 2 1
4 10 30 40
$EndElements
";

/// A tetrahedron, of which a corner is on the edge between 2 and 3 of another.
const HANGING: &str = "$MeshFormat
2.2 0 8
$EndMeshFormat
$Nodes
6
1 0 0 0
2 1 0 0
3 0 1 0
4 0 0 1
5 0.5 0.5 0
6 1 1 0
$EndNodes
$Elements
2
11 4 2 0 1 1 2 3 4
12 4 2 0 1 2 6 5 4
$EndElements
";

fn read(text: &str) -> Result<Mesh> {
    Mesh::from_gmsh_bytes(text.as_bytes())
}

fn error(text: &str) -> String {
    read(text).unwrap_err().to_string()
}

#[test]
fn both_versions_by_hand() {
    let mesh = read(TWO).unwrap();
    assert_eq!(mesh.points(), [[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [1.0, 1.0, 0.0], [0.0, 1.0, 0.0]]);
    assert_eq!((mesh.cell(), mesh.len()), (Cell::Triangle3, 2));
    assert_eq!((mesh.element(0), mesh.element(1)), (&[0, 1, 2][..], &[0, 2, 3][..]));
    assert_eq!((mesh.region_names(), mesh.regions()), (&["wood".into(), "default".into()][..], &[0, 1][..]));
    assert_eq!(mesh.side_names(), ["lower side"]);
    assert_eq!(mesh.side(0).collect::<Vec<_>>(), [[0, 1]]);
    assert_eq!(read(TWO_NEW).unwrap(), mesh);
    // by rounding alone out of the plane
    assert_eq!(read(&TWO.replace("1 1 0\n", "1 1 1e-13\n")).unwrap(), mesh);
}

/// The same in binary, either way round.
fn binary(is_new: bool, is_swapped: bool) -> Vec<u8> {
    let mut all = Vec::new();
    fn put<const N: usize>(all: &mut Vec<u8>, mut bytes: [u8; N], is_swapped: bool) {
        if is_swapped {
            bytes.reverse();
        }
        all.extend(bytes);
    }
    let ints = |all: &mut Vec<u8>, values: &[i32]| values.iter().for_each(|v| put(all, v.to_ne_bytes(), is_swapped));
    let sizes = |all: &mut Vec<u8>, values: &[u64]| values.iter().for_each(|v| put(all, v.to_ne_bytes(), is_swapped));
    let reals = |all: &mut Vec<u8>, values: &[f64]| values.iter().for_each(|v| put(all, v.to_ne_bytes(), is_swapped));
    let text = |all: &mut Vec<u8>, text: &str| all.extend(text.bytes());
    text(&mut all, if is_new { "$MeshFormat\n4.1 1 8\n" } else { "$MeshFormat\n2.2 1 8\n" });
    ints(&mut all, &[1]);
    text(&mut all, "\n$EndMeshFormat\n$PhysicalNames\n2\n1 5 \"lower side\"\n2 6 \"wood\"\n$EndPhysicalNames\n");
    let points = [(10, [0.0, 0.0, 0.0]), (20, [1.0, 0.0, 0.0]), (30, [1.0, 1.0, 0.0]), (40, [0.0, 1.0, 0.0])];
    if is_new {
        text(&mut all, "$Entities\n");
        sizes(&mut all, &[0, 1, 2, 0]);
        for (entity, groups, bounds) in [(1, &[5][..], &[1, 2][..]), (1, &[6], &[1]), (2, &[], &[])] {
            ints(&mut all, &[entity]);
            reals(&mut all, &[0.0; 6]);
            sizes(&mut all, &[groups.len() as u64]);
            ints(&mut all, groups);
            sizes(&mut all, &[bounds.len() as u64]);
            ints(&mut all, bounds);
        }
        text(&mut all, "\n$EndEntities\n$Nodes\n");
        sizes(&mut all, &[1, 4, 10, 40]);
        ints(&mut all, &[2, 1, 0]);
        sizes(&mut all, &[4, 10, 20, 30, 40]);
        points.iter().for_each(|(_, point)| reals(&mut all, point));
        text(&mut all, "\n$EndNodes\n$Elements\n");
        sizes(&mut all, &[3, 3, 2, 4]);
        for (head, element) in
            [([1, 1, 1], &[2, 10, 20][..]), ([2, 1, 2], &[3, 10, 20, 30]), ([2, 2, 2], &[4, 10, 30, 40])]
        {
            ints(&mut all, &head);
            sizes(&mut all, &[1]);
            sizes(&mut all, element);
        }
    } else {
        text(&mut all, "$Nodes\n4\n");
        for (number, point) in points {
            ints(&mut all, &[number]);
            reals(&mut all, &point);
        }
        text(&mut all, "\n$EndNodes\n$Elements\n3\n");
        ints(&mut all, &[1, 1, 2, 2, 5, 1, 10, 20]);
        ints(&mut all, &[2, 2, 2, 3, 6, 1, 10, 20, 30, 4, 0, 1, 10, 30, 40]);
    }
    text(&mut all, "\n$EndElements\n");
    all
}

#[test]
fn binary_files_of_either_order_of_bytes() {
    let mesh = read(TWO).unwrap();
    for (is_new, is_swapped) in [(false, false), (false, true), (true, false), (true, true)] {
        let bytes = binary(is_new, is_swapped);
        assert_eq!(Mesh::from_gmsh_bytes(&bytes).unwrap(), mesh, "{is_new} {is_swapped}");
        // wherever a file is cut off is an error, not a mesh
        for end in 0..bytes.len() - "$EndElements\n".len() {
            assert!(Mesh::from_gmsh_bytes(&bytes[..end]).is_err(), "{end} of {}", bytes.len());
        }
    }
    let broken = [&binary(true, false)[..300], &[0xff; 40]].concat();
    assert!(Mesh::from_gmsh_bytes(&broken).unwrap_err().to_string().contains("byte "));
}

/// As Gmsh 4.15 writes it: second order, facing down, a line in two groups, one of which has no name.
#[test]
fn files_of_gmsh() {
    let path = |name: &str| format!("{}/data/fem/{name}.msh", env!("CARGO_MANIFEST_DIR"));
    let mesh = Mesh::from_gmsh(path("formats/square-41")).unwrap();
    assert_eq!((mesh.cell(), mesh.len(), mesh.points().len()), (Cell::Triangle6, 4, 13));
    assert_eq!(mesh.region_names(), ["air"]);
    assert_eq!(mesh.side_names(), ["7", "the floor"]);
    assert_eq!((mesh.side(0).count(), mesh.side(1).count()), (2, 1));
    for other in ["formats/square-41b", "formats/square-22", "formats/square-22b"] {
        let other = Mesh::from_gmsh(path(other)).unwrap();
        assert_eq!((other.points().len(), other.region_names()), (13, mesh.region_names()));
        assert!((0..4).all(|k| other.element(k) == mesh.element(k)));
        assert_eq!((other.side(0).count(), other.side(1).count()), (2, 1));
    }
    let bar = Mesh::from_gmsh(path("bar")).unwrap();
    assert_eq!(
        (bar.cell(), bar.side_names(), bar.region_names()),
        (Cell::Tetrahedron4, &["held end".into(), "loaded end".into()][..], &["steel".into(), "brass".into()][..])
    );
}

#[test]
fn what_faces_down_is_turned_as_a_whole() {
    let turned = TWO.replace("10 20 30", "10 30 20").replace("10 30 40", "10 40 30");
    assert_eq!(read(&turned).unwrap(), read(TWO).unwrap());
    // one of two on the same surface is a fold
    let message = error(&TWO.replace("10 30 40", "10 40 30"));
    assert!(message.contains("element 4 is inverted"), "{message}");
    // but not if it is a surface of its own
    assert!(read(&TWO.replace("4 2 2 0 1 10 30 40", "4 2 2 0 2 10 40 30")).is_ok());
}

#[test]
fn what_is_no_mesh_of_gmsh() {
    let two = |from: &str, to: &str| {
        assert!(TWO.contains(from));
        error(&TWO.replace(from, to))
    };
    let new = |from: &str, to: &str| {
        assert!(TWO_NEW.contains(from));
        error(&TWO_NEW.replace(from, to))
    };
    let cases = [
        (error(""), "this is no Gmsh file"),
        (error("%%MatrixMarket"), "line 1: this is no Gmsh file"),
        (two("2.2 0", "1.0 0"), "line 2: version '1.0' is not read; versions 4.1 and 2.2 are"),
        (two("0 8", "0 4"), "numbers of 4 bytes"),
        (two("1 1 0", "1 x 0"), "line 17: 'x' is no number"),
        (two("3 2 2 6", "3.5 2 2 6"), "line 24: '3.5' is no whole number"),
        (two("$EndNodes", "$EndNode"), "line 19: here should be $EndNodes, not '$EndNode'"),
        (two("\n5\n10", "\n6\n10"), "line 19: '$EndNodes' is no whole number"),
        (two("\n4\n1 15", "\n400000000000000\n1 15"), "here should be 400000000000000 things"),
        (two("\"wood\"", "wood"), "line 10: here should be a name in quotes"),
        (two("3 2 2 6 1 10 20 30", "3 3 2 6 1 10 20 30 40"), "element 3 is a 4-node quadrangle"),
        (two("3 2 2 6 1 10 20 30", "3 93 2 6 1 10 20 30 40"), "elements of type 93 are not known"),
        (two("2 1 2 5 1 10 20", "2 8 2 5 1 10 20 30"), "element 2 of side 'lower side' is a 3-node line"),
        (two("2 1 2 5 1 10 20", "2 1 2 5 1 20 40"), "boundary part 2 is not on the side of an element"),
        (two("2 1 2 5 1 10 20", "2 1 2 5 1 10 25"), "element 2: node 25 is not there, or of no element"),
        (two("30 1 1 0", "31 1 1 0"), "element 3: node 30 is not there"),
        (two("30 1 1 0", "30 1 1 0.5"), "node 30: z = 0.5"),
        (two("30 1 1 0", "30 2 0 0"), "element 3 has no volume"),
        (two("40 0 1 0", "10 0 1 0"), "two nodes with the number 10"),
        (two("10 20 30", "10 20 20"), "element 3 has node 20 twice"),
        (new("1 6 1 1\n", "2 6 7 1 1\n"), "element 3 is in the regions 'wood' and '7'"),
        (new("$Entities", "$PartitionedEntities"), "in partitions"),
        (error(TWO_NEW.split("$Elements").next().unwrap()), "without a section $Elements"),
        (error(HANGING), "node 5 hangs: it is on the side of element 11"),
        (two("10 30 40", "10 20 40"), "elements 3 and 4 overlap"),
    ];
    for (message, part) in cases {
        assert!(message.contains(part), "{message}\nwithout {part}");
    }
    let only_lines = TWO.replace("\n4\n1 15", "\n2\n1 15");
    let (head, _) = only_lines.split_once("3 2 2 6").unwrap();
    assert!(error(&format!("{head}$EndElements\n")).contains("element 2 is a 2-node line; a mesh is of triangles"));
    let same = TWO.replace("10 30 40\n", "10 20 30\n5 2 2 0 1 10 20 30\n").replace("\n4\n1 15", "\n5\n1 15");
    assert!(error(&same.replace("40 0 1 0\n", "").replace("\n5\n10", "\n4\n10")).contains("elements 3 and 4 overlap"));
}

/// A middle node between two small triangles on the side of a larger one.
#[test]
fn hanging_nodes_in_the_plane() {
    let square = "$MeshFormat
2.2 0 8
$EndMeshFormat
$Nodes
6
1 0 0 0
2 1 0 0
3 1 1 0
4 0 1 0
5 1 0.5 0
6 2 0.5 0
$EndNodes
$Elements
4
1 2 2 0 1 1 2 3
2 2 2 0 1 1 3 4
3 2 2 0 1 2 6 5
4 2 2 0 1 5 6 3
$EndElements
";
    assert!(error(square).contains("node 5 hangs: it is on the side of element 1"));
    let mended =
        square.replace("1 2 2 0 1 1 2 3", "1 2 2 0 1 1 2 5\n5 2 2 0 1 1 5 3").replace("\n4\n1 2 2", "\n5\n1 2 2");
    assert_eq!(read(&mended).unwrap().len(), 5);
    // as a crack: nodes at the same place that are not connected
    let crack = TWO.replace("\n5\n10", "\n7\n10").replace("40 0 1 0", "40 0 1 0\n50 0 0 0\n60 1 1 0");
    assert_eq!(read(&crack.replace("10 30 40", "50 60 40")).unwrap().points().len(), 6);
}

#[test]
fn compressed() {
    use std::io::Write;
    let file = tempfile::NamedTempFile::new().unwrap();
    let mut packed = flate2::write::GzEncoder::new(file.as_file(), flate2::Compression::default());
    packed.write_all(TWO.as_bytes()).unwrap();
    packed.finish().unwrap();
    assert_eq!(Mesh::from_gmsh(file.path()).unwrap(), read(TWO).unwrap());
    assert!(matches!(Mesh::from_gmsh("no-such.msh"), Err(Error::Io { .. })));
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(3000))]

    /// Whatever is changed in a file, it is read or refused.
    #[test]
    fn damaged_files_end_in_errors(
        which in 0..4_usize,
        places in proptest::collection::vec((0..2000_usize, 0..256_usize), 1..4),
    ) {
        let mut bytes = match which {
            0 => TWO.as_bytes().to_vec(),
            1 => TWO_NEW.as_bytes().to_vec(),
            2 => binary(false, false),
            _ => binary(true, false),
        };
        for (place, byte) in places {
            let place = place % bytes.len();
            // in text, what is likely to be read
            bytes[place] = if which < 2 { b"0123456789-. \n$e"[byte % 16] } else { byte as u8 };
        }
        let _ = Mesh::from_gmsh_bytes(&bytes);
    }
}
