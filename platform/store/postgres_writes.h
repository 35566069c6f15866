// The statements by which a batch is written to PostgreSQL, and by which it is undone.
//
// Pure.
#pragma once

#include <cstddef>
#include <vector>

#include "store/postgres_connection.h"
#include "store/store.h"

namespace muster::store {

/// Prepared on every new connection: parsing and planning cost more than running.
std::vector<PostgresConnection::Prepared> postgres_statements();

/// New jobs and audit records are written by statements for many rows: a row of its own message and
/// run of the statement costs twice as much.
inline constexpr size_t kRowsOfStatement = 256;

/// The statements of a batch, with the jobs and objects that they write, for errors that name the
/// job whose id, name or key is in use, or that does not exist.
struct PostgresWrites {
  std::vector<PostgresStep> steps;
  struct Inserts {
    size_t step = 0;
    std::vector<const job::Job*> jobs;
  };
  std::vector<Inserts> inserts;
  struct Cause {
    size_t step = 0;
    const job::Job* job = nullptr;
  };
  std::vector<Cause> updates;  ///< each must change one row
  struct ObjectCause {
    size_t step = 0;
    const Object* object = nullptr;
  };
  std::vector<ObjectCause> objects;
};
/// With at most `most_rows` in a statement.
PostgresWrites writes_of(const Batch& batch, size_t most_rows);

/// Statements that read every row which a batch is about to change.
std::vector<PostgresStep> reads_before(const Batch& batch);

/// The statements that undo a batch; `before`: the answers to reads_before().
std::vector<PostgresStep> undo_of(const Batch& batch, const std::vector<PostgresRows>& before);

}  // namespace muster::store
