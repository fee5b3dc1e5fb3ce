//! A picture of where the stored entries are.

use std::io::{self, Write};
use std::path::Path;

use base64::display::Base64Display;
use base64::engine::general_purpose::STANDARD;
use rayon::prelude::*;

use super::{Csr, Scalar};
use crate::error::{Error, Result};

/// Pixels of the longer side, at most.
const LONG_SIDE: usize = 1000;
/// Pixels of either side, at least, so that a matrix of few columns is more than a line.
const SHORT_SIDE: usize = 40;
/// A place drawn this large is a square with a gap to the next one.
const GAP_FROM: usize = 6;
/// Frame around a PNG, and the paper around that.
const MARGIN: usize = 8;

/// Paper, shades of ink from few entries to many, and the frame: 16 colours make 4 bits a pixel.
const COLOURS: usize = 16;
const PAPER: u8 = 0;
const FRAME: u8 = COLOURS as u8 - 1;
const DARKEST: u8 = FRAME - 1;
const LIGHT_INK: [f64; 3] = [176.0, 200.0, 226.0];
const DARK_INK: [f64; 3] = [8.0, 30.0, 72.0];
const FRAME_COLOUR: [u8; 3] = [120, 120, 120];

/// How a picture is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Scalable vector graphics, with title and labels.
    Svg,
    /// Portable network graphics.
    Png,
}

impl Format {
    /// The format that the name of a file asks for, in any case of letters.
    ///
    /// # Errors
    /// [`Error::Usage`] if the name does not end in `.svg` or `.png`.
    pub fn of_path(path: &Path) -> Result<Self> {
        let extension = path.extension().map(|e| e.to_string_lossy().to_ascii_lowercase());
        match extension.as_deref() {
            Some("svg") => Ok(Self::Svg),
            Some("png") => Ok(Self::Png),
            _ => Err(Error::Usage(format!("{}: a picture's name ends in .svg or .png", path.display()))),
        }
    }
}

/// Rows or columns of a matrix on the pixels of a picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Axis {
    /// Rows or columns.
    n: usize,
    /// How many of them share a cell.
    per_cell: usize,
    /// Pixels of a cell.
    zoom: usize,
}

impl Axis {
    /// For `n` rows or columns of a matrix whose longer side is `longest`. Cells hold equally many, as unequal ones
    /// would show as stripes.
    fn new(n: usize, longest: usize) -> Self {
        let per_cell = longest.div_ceil(LONG_SIDE).min(n.div_ceil(SHORT_SIDE)).max(1);
        let zoom = (LONG_SIDE / longest.max(1)).clamp(1, SHORT_SIDE);
        let cells = n.div_ceil(per_cell).max(1);
        Self { n, per_cell, zoom: zoom.max(SHORT_SIDE / cells) }
    }

    fn cells(&self) -> usize {
        self.n.div_ceil(self.per_cell)
    }

    fn pixels(&self) -> usize {
        (self.cells() * self.zoom).max(SHORT_SIDE)
    }
}

/// The pattern of a matrix as a picture of at most 1000 pixels on the longer side.
///
/// A pixel stands for a cell of k × k places, and is the darker the more entries the cell stores, on a logarithmic
/// scale, so that a single entry is seen beside dense blocks. Places of small matrices are squares of several pixels.
///
/// ```
/// use declive::matrix::gallery;
/// use declive::matrix::spy::{Format, Spy};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let mut svg = Vec::new();
/// Spy::of(&gallery::poisson2d([20, 20])?).write(Format::Svg, "a Laplacian", &mut svg)?;
/// assert!(svg.starts_with(b"<svg"));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spy {
    rows: Axis,
    cols: Axis,
    nnz: usize,
    /// Entries in each cell, row by row.
    counts: Vec<u64>,
}

impl Spy {
    /// Counts the entries of each cell, rows of cells in parallel: O(nnz), and at most 8 MB.
    #[must_use]
    pub fn of<T: Scalar>(a: &Csr<T>) -> Self {
        let longest = a.n_rows().max(a.n_cols());
        let (rows, cols) = (Axis::new(a.n_rows(), longest), Axis::new(a.n_cols(), longest));
        let count = |r: usize| {
            let mut counts = vec![0u64; cols.cells()];
            let here = r * rows.per_cell..a.n_rows().min((r + 1) * rows.per_cell);
            for &j in &a.col_idx()[a.row_ptr()[here.start]..a.row_ptr()[here.end]] {
                counts[j as usize / cols.per_cell] += 1;
            }
            counts
        };
        Self { rows, cols, nnz: a.nnz(), counts: (0..rows.cells()).into_par_iter().flat_map_iter(count).collect() }
    }

    /// Writes the picture; `title` stands above an SVG.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write(&self, format: Format, title: &str, out: &mut dyn Write) -> io::Result<()> {
        match format {
            Format::Svg => self.write_svg(title, out),
            Format::Png => {
                let (width, height) = (self.cols.pixels() + 2 * MARGIN, self.rows.pixels() + 2 * MARGIN);
                let mut image = Image::new(width, height);
                image.frame(MARGIN - 1, self.cols.pixels() + 2, self.rows.pixels() + 2);
                self.draw(&mut image, MARGIN);
                image.write_png(out)
            }
        }
    }

    /// Draws the cells, the first one `margin` from the upper left corner.
    fn draw(&self, image: &mut Image, margin: usize) {
        let darkest = self.counts.iter().copied().max().unwrap_or(0);
        let gap = |zoom: usize| if zoom >= GAP_FROM { zoom.div_ceil(10) } else { 0 };
        let (gap_x, gap_y) = (gap(self.cols.zoom), gap(self.rows.zoom));
        for (k, &count) in self.counts.iter().enumerate().filter(|(_, c)| **c > 0) {
            let (y, x) = (k / self.cols.cells() * self.rows.zoom, k % self.cols.cells() * self.cols.zoom);
            let (width, height) = (self.cols.zoom - gap_x, self.rows.zoom - gap_y);
            image.fill(margin + x + gap_x / 2, margin + y + gap_y / 2, width, height, shade(count, darkest));
        }
    }

    /// A picture of the cells within a drawing of frame and labels: browsers and editors scale the one without blurring
    /// and the other without pixels, and the file stays small whatever the pattern.
    fn write_svg(&self, title: &str, out: &mut dyn Write) -> io::Result<()> {
        let (width, height) = (self.cols.pixels(), self.rows.pixels());
        let mut image = Image::new(width, height);
        self.draw(&mut image, 0);
        let mut png = Vec::new();
        image.write_png(&mut png)?;
        // captions need some width, whatever the picture's
        let (left, top, right, bottom) = (70, 58, 30, 34);
        let (total_width, total_height) = ((width + left + right).max(420), height + top + bottom);
        let (middle, end_x, end_y) = (total_width / 2, left + width, top + height);
        let size = format!("{} × {}, {} stored", grouped(self.rows.n), grouped(self.cols.n), grouped(self.nnz));
        write!(
            out,
            r##"<svg xmlns="http://www.w3.org/2000/svg" width="{total_width}" height="{total_height}"
 viewBox="0 0 {total_width} {total_height}">
<title>{title}: {size}</title>
<rect width="100%" height="100%" fill="#fff"/>
<g font-family="Helvetica, Arial, sans-serif" font-size="13" fill="#444">
<text x="{middle}" y="19" text-anchor="middle" font-size="15" fill="#111">{title}</text>
<text x="{middle}" y="37" text-anchor="middle">{size}</text>
"##,
            title = escaped(title),
        )?;
        let mut label = |x: usize, y: usize, anchor: &str, text: String| {
            writeln!(out, r#"<text x="{x}" y="{y}" text-anchor="{anchor}" font-size="11">{text}</text>"#)
        };
        if self.rows.n > 0 {
            label(left - 6, top + 9, "end", "1".into())?;
        }
        if self.rows.n > 1 {
            label(left - 6, end_y, "end", grouped(self.rows.n))?;
        }
        if self.cols.n > 0 {
            label(left, top - 5, "start", "1".into())?;
        }
        if self.cols.n > 1 {
            label(end_x, top - 5, "end", grouped(self.cols.n))?;
        }
        if let Some(legend) = self.legend() {
            label(middle, end_y + 22, "middle", legend)?;
        }
        writeln!(
            out,
            r##"</g>
<image x="{left}" y="{top}" width="{width}" height="{height}" style="image-rendering:pixelated"
 href="data:image/png;base64,{data}"/>
<rect x="{frame_x}.5" y="{frame_y}.5" width="{frame_width}" height="{frame_height}" fill="none" stroke="#777"/>
</svg>"##,
            data = Base64Display::new(&png, &STANDARD),
            frame_x = left - 1,
            frame_y = top - 1,
            frame_width = width + 1,
            frame_height = height + 1,
        )
    }

    /// What a dot means, unless it is a place.
    fn legend(&self) -> Option<String> {
        let (k, l) = (self.rows.per_cell, self.cols.per_cell);
        let most = self.counts.iter().copied().max().filter(|_| k * l > 1)?;
        let (k, l, most) = (grouped(k), grouped(l), grouped(most as usize));
        Some(format!("a dot is {k} × {l} places, the darkest with {most} stored; shades are logarithmic"))
    }
}

/// The colour of a cell with `count` > 0 entries where the fullest has `most`.
fn shade(count: u64, most: u64) -> u8 {
    let full = (most as f64).ln();
    let share = if full > 0.0 { (count as f64).ln() / full } else { 1.0 };
    1 + (share * f64::from(DARKEST - 1)).round() as u8
}

/// An image of few colours.
struct Image {
    width: usize,
    height: usize,
    pixels: Vec<u8>,
}

impl Image {
    fn new(width: usize, height: usize) -> Self {
        Self { width, height, pixels: vec![PAPER; width * height] }
    }

    fn fill(&mut self, x: usize, y: usize, width: usize, height: usize, colour: u8) {
        for line in self.pixels.chunks_mut(self.width).skip(y).take(height) {
            line[x..x + width].fill(colour);
        }
    }

    /// A line around `width` × `height` pixels at (`at`, `at`), these included.
    fn frame(&mut self, at: usize, width: usize, height: usize) {
        self.fill(at, at, width, height, FRAME);
        self.fill(at + 1, at + 1, width - 2, height - 2, PAPER);
    }

    fn write_png(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut palette = vec![255; 3];
        for step in 0..DARKEST {
            let share = f64::from(step) / f64::from(DARKEST - 1);
            palette.extend(LIGHT_INK.iter().zip(DARK_INK).map(|(light, dark)| (light + share * (dark - light)) as u8));
        }
        palette.extend(FRAME_COLOUR);
        let bytes: Vec<u8> = self
            .pixels
            .chunks(self.width)
            .flat_map(|line| line.chunks(2).map(|pair| pair[0] << 4 | pair.get(1).copied().unwrap_or(PAPER)))
            .collect();
        // no overflow: sides have some 1000 pixels
        let mut encoder = png::Encoder::new(out, self.width as u32, self.height as u32);
        encoder.set_color(png::ColorType::Indexed);
        encoder.set_depth(png::BitDepth::Four);
        encoder.set_palette(palette);
        encoder.set_compression(png::Compression::High);
        let mut writer = encoder.write_header()?;
        writer.write_image_data(&bytes)?;
        Ok(writer.finish()?)
    }
}

/// 1234567 as `1 234 567`, with thin spaces.
fn grouped(n: usize) -> String {
    let digits = n.to_string();
    let groups: Vec<_> = digits.as_bytes().rchunks(3).rev().map(String::from_utf8_lossy).collect();
    groups.join("\u{2009}")
}

/// Text within XML, which has no control characters.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace(char::is_control, "?")
}

#[cfg(test)]
mod tests {
    use base64::Engine;

    use super::super::gallery;
    use super::*;

    fn matrix(n_rows: usize, n_cols: usize, places: &[(u32, u32)]) -> Csr {
        let (rows, cols): (Vec<u32>, Vec<u32>) = places.iter().copied().unzip();
        Csr::from_triplets(n_rows, n_cols, &rows, &cols, &vec![1.0; rows.len()]).unwrap()
    }

    fn written(spy: &Spy, format: Format) -> Vec<u8> {
        let mut out = Vec::new();
        spy.write(format, "A <& B>\n", &mut out).unwrap();
        out
    }

    /// The colours of the pixels of a PNG, a byte each, and its width.
    fn decoded(bytes: &[u8]) -> (Vec<u8>, usize) {
        let mut decoder = png::Decoder::new(io::Cursor::new(bytes));
        decoder.set_transformations(png::Transformations::IDENTITY);
        let mut reader = decoder.read_info().unwrap();
        let mut packed = vec![0; reader.output_buffer_size().unwrap()];
        let info = reader.next_frame(&mut packed).unwrap();
        let width = info.width as usize;
        let lines = packed.chunks(info.line_size).take(info.height as usize);
        (lines.flat_map(|line| line.iter().flat_map(|b| [b >> 4, b & 15]).take(width)).collect(), width)
    }

    #[test]
    fn extensions() {
        let of = |name: &str| Format::of_path(Path::new(name));
        assert_eq!((of("a.svg").unwrap(), of("b/c.PNG").unwrap()), (Format::Svg, Format::Png));
        for name in ["a.jpg", "svg", "-", "png/a"] {
            let error = of(name).unwrap_err().to_string();
            assert!(error.contains(name) && error.contains(".svg or .png"), "{error}");
        }
    }

    #[test]
    fn small_matrices_have_a_square_a_place() {
        let spy = Spy::of(&matrix(3, 4, &[(0, 0), (2, 3)]));
        assert_eq!(spy.counts, [1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
        let (pixels, width) = decoded(&written(&spy, Format::Png));
        let height = pixels.len() / width;
        assert_eq!((width, height), (4 * 40 + 16, 3 * 40 + 16));
        let at = |x: usize, y: usize| pixels[y * width + x];
        let square = |row: usize, col: usize| at(8 + 40 * col + 10, 8 + 40 * row + 10);
        assert_eq!([square(0, 0), square(2, 3), square(0, 1), square(2, 2)], [DARKEST, DARKEST, PAPER, PAPER]);
        assert_eq!([at(8 + 1, 18), at(8 + 38, 18)], [PAPER; 2]); // half the gap on either side
        assert_eq!([at(7, 7), at(width - 8, height - 8), at(0, 0)], [FRAME, FRAME, PAPER]);
        assert_eq!(pixels.iter().filter(|&&p| p == DARKEST).count(), 2 * 36 * 36);
    }

    #[test]
    fn cells_of_large_matrices_hold_equally_many() {
        let axis = Axis::new(2500, 2500);
        assert_eq!((axis.per_cell, axis.cells(), axis.zoom), (3, 834, 1));
        let a = gallery::tridiagonal(2500).unwrap();
        let spy = Spy::of(&a);
        assert_eq!(spy.counts.iter().sum::<u64>(), a.nnz() as u64);
        assert_eq!(spy.counts[..2], [7, 1]); // of 3 × 3 places: three, two, two; and one beside them
        let (pixels, width) = decoded(&written(&spy, Format::Png));
        let at = |x: usize, y: usize| pixels[(y + MARGIN) * width + x + MARGIN];
        assert_eq!([at(0, 0), at(1, 0), at(2, 0), at(833, 833)], [DARKEST, 1, PAPER, shade(1, 7)]);
    }

    #[test]
    fn shades_are_logarithmic() {
        assert_eq!([shade(1, 1), shade(1, 1000), shade(1000, 1000)], [DARKEST, 1, DARKEST]);
        assert_eq!(shade(32, 1024), 1 + (DARKEST - 1).div_ceil(2));
    }

    #[test]
    fn awkward_shapes_fit() {
        for (n_rows, n_cols) in [(0, 0), (0, 5), (5, 0), (1, 1), (1, 100_000), (100_000, 3), (1000, 1000), (1001, 999)]
        {
            let places: &[(u32, u32)] = if n_rows > 0 && n_cols > 0 { &[(0, 0)] } else { &[] };
            let spy = Spy::of(&matrix(n_rows, n_cols, places));
            let (pixels, width) = decoded(&written(&spy, Format::Png));
            let sides = [width, pixels.len() / width];
            assert!(
                sides.iter().all(|s| (SHORT_SIDE..=LONG_SIDE + 2 * MARGIN).contains(s)),
                "{n_rows} × {n_cols}: {sides:?}"
            );
            assert_eq!(pixels.contains(&DARKEST), !places.is_empty());
            assert!(String::from_utf8(written(&spy, Format::Svg)).unwrap().ends_with("</svg>\n"));
        }
    }

    #[test]
    fn an_svg_says_what_it_shows() {
        let svg = String::from_utf8(written(&Spy::of(&gallery::tridiagonal(2500).unwrap()), Format::Svg)).unwrap();
        for part in [
            "A &lt;&amp; B&gt;?",
            "2\u{2009}500 × 2\u{2009}500, 7\u{2009}498 stored",
            "3 × 3 places, the darkest with 7 stored",
        ] {
            assert!(svg.contains(part), "{part}");
        }
        let (_, data) = svg.split_once("base64,").unwrap();
        let png = STANDARD.decode(data.split_once('"').unwrap().0).unwrap();
        assert_eq!(decoded(&png).1, 834);
    }

    #[test]
    fn noise_stays_small() {
        let noise = |k: u64| (k.wrapping_mul(6_364_136_223_846_793_005) >> 33) as u32;
        let places: Vec<_> = (0..600_000u64).map(|k| (noise(2 * k + 1) % 3000, noise(2 * k + 77_777) % 3000)).collect();
        let svg = written(&Spy::of(&matrix(3000, 3000, &places)), Format::Svg);
        assert!(svg.len() < 1_000_000, "{}", svg.len());
    }
}
