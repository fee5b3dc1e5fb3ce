/*
 * declive solves large sparse linear systems A x = b on every OpenCL device of a machine, and on the host's threads where there is
 * none. The library tells more in docs/c.md; its options are those of the command, in docs/command.md.
 *
 *     declive_solver *s = NULL;
 *     if (declive_create(&s)
 *         || declive_set(s, "rtol", "1e-10")
 *         || declive_set_csr_i32(s, n, n, nnz, row_ptr, col_idx, values, DECLIVE_BORROW)
 *         || declive_solve(s, b, x))
 *         fprintf(stderr, "%s\n", declive_last_error());
 *     declive_destroy(s);
 *
 * Codes: functions that give an int give DECLIVE_OK, or a code that is not 0; declive_last_error then has a line for people. Functions
 * that give a text give a null pointer, and those that give a number -1, where they fail.
 *
 * Pointers: a solver is one that declive_create has given and declive_destroy has not had. Texts end with a NUL. Arrays have as many
 * elements as is said, and may overlap only if they are read. Null pointers and wrong sizes are errors as far as that can be told.
 * Complex numbers are two doubles, the real and the imaginary part, as are double complex of C, std::complex<double> of C++ and
 * complex(c_double_complex) of Fortran.
 *
 * Threads: solvers are independent of each other. One solver is used by one call at a time: a call that comes while another one
 * runs gives DECLIVE_INPUT, but for declive_cancel. Callbacks come from threads of the library, and must neither throw
 * exceptions nor jump out.
 */

#ifndef DECLIVE_H
#define DECLIVE_H

#include <stddef.h>
#include <stdint.h>

/**
 * Done; of a solve: converged, and b - A x was recomputed.
 */
#define DECLIVE_OK 0

/**
 * A solve has not converged: x is the best approximation reached, and its outcome tells why.
 */
#define DECLIVE_NOT_CONVERGED 1

/**
 * The call or its input is wrong: a null pointer, an unknown option, a file or a matrix that is not what it should be.
 */
#define DECLIVE_INPUT 2

/**
 * The machine failed: a device, a driver, or too little memory.
 */
#define DECLIVE_MACHINE 3

/**
 * A defect of the library. The solver can only be destroyed then.
 */
#define DECLIVE_INTERNAL 4

/**
 * A flag of declive_set_csr_...: values are complex, each two doubles, the real and the imaginary part. All values, right-hand sides
 * and solutions of this matrix are so then.
 */
#define DECLIVE_COMPLEX 1

/**
 * A flag of declive_set_csr_...: rows, columns and entries are counted from 1, as in Fortran, so that row_ptr begins with 1.
 */
#define DECLIVE_ONE_BASED 2

/**
 * A flag of declive_set_csr_...: the arrays are used where they are. They must stay, and must not change, until the solver has another
 * matrix or is destroyed. values always are used so, columns of 32 bits and row pointers of 64 bits if they are counted from 0;
 * the others are copied all the same.
 */
#define DECLIVE_BORROW 4

/**
 * A flag of declive_solve_columns: x holds a first guess.
 */
#define DECLIVE_GUESS 1

/**
 * Why a solve ended: the stop test holds for b - A x, recomputed.
 */
#define DECLIVE_REASON_CONVERGED 0

/**
 * The system has no solution, and x is one of least squares.
 */
#define DECLIVE_REASON_LEAST_SQUARES 1

/**
 * The limit on iterations.
 */
#define DECLIVE_REASON_MAX_ITERS 2

/**
 * The limit on time.
 */
#define DECLIVE_REASON_TIME_LIMIT 3

/**
 * The residual no longer falls: the precision is exhausted, or the matrix is singular.
 */
#define DECLIVE_REASON_STAGNATION 4

/**
 * The residual no longer falls, and is one of rounding: no x in double precision is better.
 */
#define DECLIVE_REASON_ROUNDING 5

/**
 * The residual has grown beyond all bounds.
 */
#define DECLIVE_REASON_DIVERGENCE 6

/**
 * The method needs a positive definite matrix, and this is none.
 */
#define DECLIVE_REASON_INDEFINITE 7

/**
 * The matrix is singular, and no x solves the system, as far as can be told.
 */
#define DECLIVE_REASON_SINGULAR 8

/**
 * The method would divide by zero.
 */
#define DECLIVE_REASON_BREAKDOWN 9

/**
 * An infinity or a NaN turned up.
 */
#define DECLIVE_REASON_NON_FINITE 10

/**
 * declive_cancel, or a callback, has ended it.
 */
#define DECLIVE_REASON_INTERRUPTED 11

/**
 * Another one, which declive_reason_text tells.
 */
#define DECLIVE_REASON_OTHER 12

/**
 * A solver: options, a matrix, and how the last solve went.
 */
typedef struct declive_solver declive_solver;

/**
 * Sets z to an approximation of the inverse of A times r, both of n elements, in the order of the matrix.
 */
typedef void (*declive_preconditioner)(void *user, int64_t n, const double *r, double *z);

/**
 * Called now and then in a solve, with the user's pointer, iterations done, ||r||_2 / ||b||_2 by the recurrence, where that has to
 * arrive, and seconds in the iteration. A result other than 0 ends the solve with DECLIVE_REASON_INTERRUPTED.
 */
typedef int (*declive_progress)(void *user,
                                int64_t iterations,
                                double relative_residual,
                                double target,
                                double seconds);

/**
 * How a solve went for one right-hand side. Norms are of doubles; of complex systems, those of the complex vectors.
 */
typedef struct declive_outcome {
    /**
     * Why it ended: DECLIVE_REASON_...
     */
    int reason;
    /**
     * 1 if it converged, else 0.
     */
    int converged;
    /**
     * Iterations of all methods that took part.
     */
    int64_t iterations;
    /**
     * How often b - A x, recomputed, did not meet the test that its recurrence had met, so that the iteration went on.
     */
    int64_t restarts;
    /**
     * Elements of declive_history.
     */
    int64_t history_length;
    /**
     * ||b - A x||_2 / ||b||_2, recomputed in more than double precision.
     */
    double relative_residual;
    /**
     * ||b - A x||_2.
     */
    double residual_2;
    /**
     * The largest |b - A x|.
     */
    double residual_inf;
    /**
     * ||b||_2.
     */
    double rhs_2;
    /**
     * ||b - A x||_inf / (||A||_inf ||x||_inf + ||b||_inf): some 1e-16 is as good as it gets.
     */
    double backward_error;
    /**
     * ||b - A x||_2 / ||b||_2 by the recurrence of the method.
     */
    double recurrence_relative_residual;
    /**
     * Of methods of least squares, ||A' r||_2 / (a ||r||_2) for r = b - A x, with the root mean square a of the norms of A's columns; else NaN.
     */
    double optimality;
    /**
     * Seconds to build kernels that were needed for the first time.
     */
    double compile_seconds;
    /**
     * Seconds to take b and the first guess to the devices.
     */
    double upload_seconds;
    /**
     * Seconds in the iteration.
     */
    double solve_seconds;
    /**
     * Seconds to bring x back.
     */
    double gather_seconds;
    /**
     * Seconds to recompute b - A x.
     */
    double verify_seconds;
} declive_outcome;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * The version of the library, such as 0.1.0.
 */
const char *declive_version(void);

/**
 * What went wrong in the last call of this thread that gave no DECLIVE_OK, or null for a text, or -1 for a number: with the offending
 * thing and what to do about it. Stays until the next such call of this thread. Empty if there was none.
 */
const char *declive_last_error(void);

/**
 * All options, a line for each: its name, its values, what it is, and its default, with tabs between them.
 */
const char *declive_options(void);

/**
 * Closes the devices that no solver uses. When the last solver that used one is destroyed, it stays open for the next, which would
 * wait for the driver again; an NVIDIA GPU has some 500 MB of its memory taken as long.
 */
int declive_close_idle(void);

/**
 * Makes a solver with default options and no matrix, and puts it to *s. To be destroyed by declive_destroy.
 */
int declive_create(struct declive_solver **s);

/**
 * Destroys a solver, and all texts and arrays that it has given. When it returns, nobody reads borrowed arrays any more; it waits for a
 * factorisation that a limit on time has left running. Null is fine. A solver that another call is using stays, and the code is
 * DECLIVE_INPUT.
 */
int declive_destroy(struct declive_solver *s);

/**
 * Sets an option, such as "precond" to "amg" or "rtol" to "1e-10": names and values are those of the options of `declive solve`, which
 * declive_options lists. Devices, methods and the like hold from the next solve on, which then makes all anew; tolerances and limits
 * cost nothing.
 */
int declive_set(struct declive_solver *s,
                const char *name,
                const char *value);

/**
 * The value of an option; null for one that there is not. Stays until the next call of this function for the solver.
 */
const char *declive_get(struct declive_solver *s,
                        const char *name);

/**
 * Gives the solver an n_rows x n_cols matrix as compressed sparse rows. Element i of row_ptr tells where row i begins in col_idx and values,
 * which have nnz elements; the last of its n_rows + 1 elements is where the last row ends. Columns rise strictly within a row. Integers have
 * 32 bits; columns up to 2^32 - 1 may be given as unsigned ones. flags are DECLIVE_COMPLEX, DECLIVE_ONE_BASED and DECLIVE_BORROW
 * or'ed together, or 0: then all is copied.
 */
int declive_set_csr_i32(struct declive_solver *s,
                        int64_t n_rows,
                        int64_t n_cols,
                        int64_t nnz,
                        const int32_t *row_ptr,
                        const int32_t *col_idx,
                        const double *values,
                        unsigned int flags);

/**
 * The same with integers of 64 bits. There are at most 2^32 - 1 columns all the same.
 */
int declive_set_csr_i64(struct declive_solver *s,
                        int64_t n_rows,
                        int64_t n_cols,
                        int64_t nnz,
                        const int64_t *row_ptr,
                        const int64_t *col_idx,
                        const double *values,
                        unsigned int flags);

/**
 * The same with row pointers of 64 bits and columns of 32: the types of which DECLIVE_BORROW copies nothing.
 */
int declive_set_csr_i64_i32(struct declive_solver *s,
                            int64_t n_rows,
                            int64_t n_cols,
                            int64_t nnz,
                            const int64_t *row_ptr,
                            const int32_t *col_idx,
                            const double *values,
                            unsigned int flags);

/**
 * Reads the matrix from a file: Matrix Market, compressed or not, an archive of the SuiteSparse collection, or SciPy's .npz. path is UTF-8.
 */
int declive_read(struct declive_solver *s,
                 const char *path);

/**
 * Rows of the matrix; -1 if there is none.
 */
int64_t declive_rows(const struct declive_solver *s);

/**
 * Columns of the matrix; -1 if there is none.
 */
int64_t declive_cols(const struct declive_solver *s);

/**
 * Entries of the matrix; -1 if there is none.
 */
int64_t declive_nnz(const struct declive_solver *s);

/**
 * 1 if the matrix is complex, 0 if it is real; -1 if there is none.
 */
int declive_is_complex(const struct declive_solver *s);

/**
 * Gives the matrix other values in the same pattern, as for a next step in time: nnz doubles in the order of the entries, twice as many if it is
 * complex. They are copied. Most solvers keep all but the values. After an error the former values stay.
 */
int declive_update_values(struct declive_solver *s,
                          int64_t nnz,
                          const double *values);

/**
 * For precond = amg: where the nodes of a mesh are, dim = 2 or 3 numbers for each, one node after the other, so that motions of rigid bodies are
 * known. Unknowns of a node are consecutive rows: its displacements and, in frames and shells, its rotations. Copied; nodes = 0
 * forgets them. Takes the place of near-null vectors.
 */
int declive_set_coordinates(struct declive_solver *s,
                            int dim,
                            int64_t nodes,
                            const double *coordinates);

/**
 * For precond = amg: count vectors of n elements, one after the other, that A makes hardly anything of, and a cycle interpolates exactly.
 * Copied; count = 0 forgets them. Takes the place of coordinates.
 */
int declive_set_near_null(struct declive_solver *s,
                          int64_t n,
                          int count,
                          const double *vectors);

/**
 * A preconditioner of the caller's own in place of "precond", for method = cg, gmres or auto and real matrices; null forgets it. It is called by
 * one thread at a time, which may be another one each time, and must not call the solver. For cg it should be symmetric and
 * positive definite.
 */
int declive_set_preconditioner(struct declive_solver *s,
                               declive_preconditioner apply,
                               void *user);

/**
 * Watches solves; null ends that. It is called from a thread of the library, should return soon, and must not call the solver, but for
 * declive_cancel.
 */
int declive_set_progress(struct declive_solver *s,
                         declive_progress progress,
                         void *user);

/**
 * Takes the matrix to the devices, and makes what the method and the preconditioner need. The first solve does it, too: call this to
 * have it done, or its errors, before.
 */
int declive_setup(struct declive_solver *s);

/**
 * Solves A x = b, beginning with x = 0. b has an element for each row, x for each column. DECLIVE_NOT_CONVERGED leaves the best approximation
 * reached in x; after other codes, x has no meaning.
 */
int declive_solve(struct declive_solver *s,
                  const double *b,
                  double *x);

/**
 * Solves A X = B for several right-hand sides, one after the other in b, as their solutions in x: up to 16 go through the same
 * iterations, in which the matrix is read once for all of them. With DECLIVE_GUESS in flags, x holds first guesses. The code is
 * DECLIVE_NOT_CONVERGED if one of them has not converged.
 */
int declive_solve_columns(struct declive_solver *s,
                          int64_t columns,
                          const double *b,
                          double *x,
                          unsigned int flags);

/**
 * Ends the solve that runs, in another thread, with DECLIVE_REASON_INTERRUPTED; if none does, the next one. May be called at any time
 * while the solver is there, from any thread, and from a handler of signals.
 */
int declive_cancel(const struct declive_solver *s);

/**
 * How the last solve went for right-hand side column, counted from 0: fills the first size bytes of *outcome, for which
 * sizeof *outcome is right. Later versions may have more fields at the end.
 */
int declive_get_outcome(const struct declive_solver *s,
                        int64_t column,
                        struct declive_outcome *outcome,
                        size_t size);

/**
 * Why the last solve ended for right-hand side column, counted from 0, in words; null if there is none. Stays until the next call of this
 * function for the solver.
 */
const char *declive_reason_text(struct declive_solver *s,
                                int64_t column);

/**
 * The residuals of the last solve for right-hand side column, counted from 0: ||r||_2 / ||b||_2 by the recurrence, before the first iteration and
 * after each. Puts the first of them to *history, and how many there are to *length. They stay until the next solve, or another matrix.
 */
int declive_history(const struct declive_solver *s,
                    int64_t column,
                    const double **history,
                    int64_t *length);

/**
 * The method that the solver follows, such as cg; null before declive_setup or the first solve. Stays until the next call of this function
 * for the solver.
 */
const char *declive_method(struct declive_solver *s);

/**
 * The preconditioner that the solver has, such as jacobi; null before declive_setup or the first solve. Stays until the next call of this
 * function for the solver.
 */
const char *declive_precond(struct declive_solver *s);

/**
 * What is known of the solver and its last solve, as JSON, with devices, times and all right-hand sides; null before declive_setup or the
 * first solve. Stays until the next call of this function for the solver.
 */
const char *declive_report(struct declive_solver *s);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* DECLIVE_H */
