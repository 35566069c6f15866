// A batch as the statements that write it, and as those that would take it back.
//
// Pure.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "store/postgres_connection.h"
#include "store/store.h"

namespace muster::store {

/// Prepared on every new connection: parsing costs more than running.
extern const std::span<const PostgresConnection::Prepared> kPostgresStatements;

/// The statements of a batch, and of which job each is, to say whose id, name or key is taken, or
/// who is not there.
struct PostgresWrites {
  std::vector<PostgresStep> steps;
  struct Cause {
    size_t step = 0;
    const job::Job* job = nullptr;
  };
  std::vector<Cause> inserts;
  std::vector<Cause> updates;  ///< each has to change one row
};
PostgresWrites writes_of(const Batch& batch);

/// Reads every row that a batch is about to change, as it is before.
std::vector<PostgresStep> reads_before(const Batch& batch);

/// The inverse of a batch of which `before` is what reads_before() gave: what it touched goes, what
/// was there comes back.
std::vector<PostgresStep> undo_of(const Batch& batch, const std::vector<PostgresRows>& before);

}  // namespace muster::store
