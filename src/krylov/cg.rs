//! Conjugate gradients (Hestenes and Stiefel 1952, doi 10.6028/jres.049.044) with β known before the residual is.
//!
//! | pass | bytes a row in double precision, without / with weights |
//! |---|---|
//! | q = A p, p·q, q·q | 12 nnz / n + 20 |
//! | x += α p, r −= α q, p = r + β p, r·r | 48 / 56 |
//!
//! β = ρ' / ρ is formed before ρ' = r'·r' is known, from ρ' = ρ − 2 α r·q + α² q·q and r·q = p·q, as q is orthogonal to the former
//! direction (Chronopoulos and Gear 1989, doi 10.1016/0377-0427(89)90045-9; Rupp et al. 2016, doi 10.1145/2907944). So an
//! iteration is one pass and one sum over ranks. α is formed from ρ as it was computed, so that no error of a prediction lives
//! longer than one direction; where all digits of ρ' cancel and it comes out below 0, β = 0. See `docs/measurements.md`.

use crate::backend::text::Recorder;

/// x, r and p of one iteration after the other, for a symmetric and positive definite matrix.
pub(crate) fn cg(k: &Recorder) {
    let (a, mut x, mut r) = (k.a(), k.x(), k.r());
    let [p, q] = k.vectors(["p", "q"]);

    k.direction(p, r);
    let rho = k.carried(r.dot(r));
    k.iteration(|| {
        q.set(a * p);
        let (pq, qq) = (p.dot(q), q.dot(q));
        k.require_definite(pq);
        let alpha = rho / pq;
        let beta = (alpha * (qq / pq) - k.number(1.0)).larger(k.number(0.0));
        x += alpha * p;
        r -= alpha * q;
        p.set(r + beta * p);
        k.next(rho, r.dot(r));
        k.watch(k.norm2(r));
    });
}
