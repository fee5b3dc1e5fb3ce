// Solves a complex system, that of a damped oscillation at some frequency, from C++: a unique_ptr destroys the solver, and codes become
// exceptions. Checks b - A x itself.
#include <cmath>
#include <complex>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <stdexcept>
#include <vector>

#include <declive.h>

struct Destroy {
    void operator()(declive_solver *s) const { declive_destroy(s); }
};
using Solver = std::unique_ptr<declive_solver, Destroy>;

static void check(int code) {
    if (code != DECLIVE_OK)
        throw std::runtime_error(declive_last_error());
}

static Solver create() {
    declive_solver *s = nullptr;
    check(declive_create(&s));
    return Solver(s);
}

using Complex = std::complex<double>;

static const double *parts(const std::vector<Complex> &v) { return reinterpret_cast<const double *>(v.data()); }
static double *parts(std::vector<Complex> &v) { return reinterpret_cast<double *>(v.data()); }

int main() try {
    const std::int64_t n = 2000;
    const Complex diagonal(2.1, 0.3);
    std::vector<std::int64_t> row_ptr{0}, col_idx;
    std::vector<Complex> values;
    for (std::int64_t row = 0; row < n; row++) {
        for (std::int64_t column = row - 1; column <= row + 1; column++) {
            if (column < 0 || column >= n)
                continue;
            col_idx.push_back(column);
            values.push_back(column == row ? diagonal : Complex(-1.0));
        }
        row_ptr.push_back(static_cast<std::int64_t>(col_idx.size()));
    }
    const std::vector<Complex> b(n, Complex(1.0, -1.0));
    std::vector<Complex> x(n);

    Solver s = create();
    check(declive_set(s.get(), "rtol", "1e-9"));
    check(declive_set_csr_i64(s.get(), n, n, row_ptr.back(), row_ptr.data(), col_idx.data(), parts(values), DECLIVE_COMPLEX));
    check(declive_solve(s.get(), parts(b), parts(x)));

    double r2 = 0, b2 = 0;
    for (std::int64_t row = 0; row < n; row++) {
        Complex r = b[row];
        for (std::int64_t k = row_ptr[row]; k < row_ptr[row + 1]; k++)
            r -= values[k] * x[col_idx[k]];
        r2 += std::norm(r);
        b2 += std::norm(b[row]);
    }
    const double residual = std::sqrt(r2 / b2);
    std::cout << declive_method(s.get()) << ": " << declive_reason_text(s.get(), 0) << ", ||b - A x|| / ||b|| = " << residual << '\n';

    // a wrong option is an exception here
    try {
        check(declive_set(s.get(), "precision", "f16"));
        return EXIT_FAILURE;
    } catch (const std::runtime_error &error) {
        std::cout << error.what() << '\n';
    }
    return residual <= 1e-9 ? EXIT_SUCCESS : EXIT_FAILURE;
} catch (const std::exception &error) {
    std::cerr << error.what() << '\n';
    return EXIT_FAILURE;
}
