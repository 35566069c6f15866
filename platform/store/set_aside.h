// How an unreadable record is found and moved into the table `set_aside`, whichever the database.
//
// Pure: makes the SQL; a caller that has the database runs it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "store/records.h"

namespace muster::store {

/// The unreadable records of a store, with what finds the row of each again.
class UnreadableRecords {
 public:
  struct Found {
    const RecordKind* kind = nullptr;
    std::vector<std::string> key;
    Unreadable record;
  };

  void look_at(const RecordKind& kind, const RecordRow& row) {
    const Result<void> read = read_record(kind, row, nullptr);
    if (read) return;
    found_.push_back({.kind = &kind,
                      .key = {row.key.begin(), row.key.end()},
                      .record = describe_unreadable(kind, row, read.error().what)});
  }

  /// Errors as choose_unreadable() has them.
  Result<Found> choose(const std::string& name) const {
    std::vector<Unreadable> records;
    for (const Found& found : found_) records.push_back(found.record);
    MUSTER_TRY(const size_t index, choose_unreadable(records, name));
    return found_[index];
  }

 private:
  std::vector<Found> found_;
};

/// SQL with the parameters 1 to n: first the columns of the key; then, of `insert` alone, the time,
/// the title and the fault. `sign` begins a parameter: '?' or '$'.
struct MoveStatements {
  std::string insert;
  std::string remove;
};
MoveStatements move_statements(const RecordKind& kind, char sign);

/// What a listing prints of a row of `set_aside`.
std::string set_aside_sentence(std::string_view title, std::string_view fault, int64_t time);
inline constexpr const char* kSetAsideQuery =
    "SELECT title, fault, time FROM set_aside ORDER BY number";

}  // namespace muster::store
