//! Colours of values, and pictures of them as PNG.

use std::io::{self, Write};

/// For values on both sides of 0: the colours of −1, −½, 0, ½ and 1.
pub(crate) const DIVERGING: [[f64; 3]; 5] =
    [[5.0, 48.0, 97.0], [67.0, 147.0, 195.0], [250.0, 250.0, 250.0], [214.0, 96.0, 77.0], [103.0, 0.0, 31.0]];
/// For values from the least to the largest, dark to light: five colours of viridis.
pub(crate) const SEQUENTIAL: [[f64; 3]; 5] =
    [[68.0, 1.0, 84.0], [59.0, 82.0, 139.0], [33.0, 145.0, 140.0], [94.0, 201.0, 98.0], [253.0, 231.0, 37.0]];

/// The colour at a place from 0 to 1 of a scale; what is no number has that of the middle.
pub(crate) fn colour(scale: &[[f64; 3]; 5], place: f64) -> [f64; 3] {
    let last = scale.len() - 1;
    let place = if place.is_nan() { 0.5 } else { place.clamp(0.0, 1.0) } * last as f64;
    let below = (place as usize).min(last - 1);
    let part = place - below as f64;
    std::array::from_fn(|c| scale[below][c] + part * (scale[below + 1][c] - scale[below][c]))
}

/// Writes rows of pixels, the top one first, of three bytes each.
///
/// # Errors
/// Those of `out`, and for other numbers of bytes.
pub(crate) fn write_png(out: &mut dyn Write, [width, height]: [u32; 2], pixels: &[u8]) -> io::Result<()> {
    let mut encoder = png::Encoder::new(out, width, height);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    encoder.set_compression(png::Compression::Balanced);
    let mut writer = encoder.write_header()?;
    writer.write_image_data(pixels)?;
    Ok(writer.finish()?)
}
