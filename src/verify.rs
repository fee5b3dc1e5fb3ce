//! placeholder
/// b - A x.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Residual {
    /// ‖b − A x‖₂
    pub norm_2: f64,
    /// ‖b‖₂
    pub rhs_norm_2: f64,
    /// relative
    pub relative_2: f64,
    /// inf norm
    pub norm_inf: f64,
    /// backward error
    pub backward_error: f64,
}
