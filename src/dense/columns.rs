//! Which rank has which columns.

use super::room::Room;

/// Blocks of columns of a square matrix, dealt out to ranks in turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Columns {
    /// All columns,
    pub(super) n: usize,
    /// those of a block but the last,
    pub(super) block: usize,
    /// and the ranks.
    pub(super) ranks: usize,
}

impl Columns {
    /// Blocks.
    pub(super) fn blocks(self) -> usize {
        self.n.div_ceil(self.block)
    }

    /// Columns of block `j`.
    pub(super) fn width(self, j: usize) -> usize {
        self.block.min(self.n - self.first(j))
    }

    /// The first column of block `j`.
    pub(super) fn first(self, j: usize) -> usize {
        j * self.block
    }

    /// What block `j` needs on its way, from the diagonal down.
    pub(super) fn room(self, j: usize) -> Room {
        Room { m: self.n - self.first(j), w: self.width(j) }
    }

    /// Who has block `j`.
    pub(super) fn owner(self, j: usize) -> usize {
        j % self.ranks
    }

    /// The first of its columns among those of its rank.
    pub(super) fn place(self, j: usize) -> usize {
        j / self.ranks * self.block
    }

    /// Columns of a rank.
    pub(super) fn of_rank(self, rank: usize) -> usize {
        (rank..self.blocks()).step_by(self.ranks).map(|j| self.width(j)).sum()
    }

    /// The first block of a rank behind block `j`: there may be none of this number.
    pub(super) fn next_of(self, rank: usize, j: usize) -> usize {
        let ahead = (rank + self.ranks - (j + 1) % self.ranks) % self.ranks;
        j + 1 + ahead
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_column_has_one_place() {
        for (n, block, ranks) in [(1, 4, 3), (12, 4, 2), (13, 4, 2), (29, 3, 5), (8, 8, 1)] {
            let columns = Columns { n, block, ranks };
            assert_eq!((0..ranks).map(|rank| columns.of_rank(rank)).sum::<usize>(), n);
            for rank in 0..ranks {
                let mut place = 0;
                for j in (0..columns.blocks()).filter(|&j| columns.owner(j) == rank) {
                    assert_eq!(columns.place(j), place);
                    place += columns.width(j);
                }
                for j in 0..columns.blocks() {
                    let next = columns.next_of(rank, j);
                    assert!(next > j && next <= j + ranks && columns.owner(next) == rank);
                }
            }
        }
    }
}
