/* Comes before all else where each work-group has a column of its own, and iterates for it as if there were no other group: see
 * src/backend/source/batch.rs. */

/* The column that a group has: its own number, before the macros below hide it. */
static inline uint own_column(void) { return (uint)get_group_id(0); }

#define get_group_id(dimension) ((size_t)0)
#define get_num_groups(dimension) ((size_t)1)
#define get_global_id(dimension) get_local_id(dimension)
#define get_global_size(dimension) get_local_size(dimension)
