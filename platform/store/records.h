// The kinds of record that a store keeps: which columns a row of each has, how a row is verified
// and read, and how a row that cannot be read is named.
//
// Each row carries a checksum of its columns and its document. Neither SQLite nor the disk below it
// detects a bit that flips inside a row; without the checksum such a row is read as another job, or
// as another quota. The idempotency key of a job is the only value that the checksum leaves out,
// because a change of a job does not bring it along; the index of the keys holds it a second time.
//
// Pure; a caller that has the database brings the rows.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "access/account_table.h"
#include "base/result.h"
#include "job/notification_table.h"
#include "job/project_table.h"
#include "store/store.h"
#include "words/job_table.h"

namespace muster::store {

/// CRC-32 of the columns, each with its length before it: never negative. The document comes last.
int64_t checksum_of(std::span<const std::string_view> columns);
inline int64_t checksum_of(std::initializer_list<std::string_view> columns) {
  return checksum_of(std::span(columns.begin(), columns.size()));
}
int64_t checksum_of(const job::Job& job, std::string_view document);
int64_t checksum_of(const job::Project& project, std::string_view document);
int64_t checksum_of(const access::AuditRecord& record, std::string_view document);
/// Of a node_setting, whose one content is that the node is cordoned.
int64_t checksum_of_cordon(std::string_view node);

/// A row as a database gives it; the bytes live as long as the database keeps them.
struct RecordRow {
  std::vector<std::string_view> key;  ///< in the order of RecordKind::key
  std::string_view document;
  int64_t checksum = 0;
};

/// A table and the records in it.
struct RecordKind {
  const char* table;
  const char* noun;  ///< "job"; also the prefix by which a record is named: "user:ada"
  /// SQL of both databases, as texts: the columns that name the record, and others that are sought.
  std::vector<const char*> key;
  const char* document;  ///< SQL: what the row holds beside its key
  const char* order;     ///< SQL
  /// SQL: the row as the table `set_aside` keeps it: its sequence, id, project, name, idempotency
  /// key, document and checksum.
  const char* kept;
  /// Reads the document, compares it with the key, and appends the record to `into` where there is
  /// an `into`.
  Result<void> (*read)(const RecordRow& row, Contents* into);

  /// "SELECT key..., document, checksum FROM table ORDER BY order".
  std::string query() const;
};

/// All but the audit log, in the order in which Contents is filled.
extern const std::span<const RecordKind> kRecordKinds;
extern const RecordKind kAuditKind;

/// Verifies and reads a row. `into` may be nullptr: the row is read for its faults alone.
/// kInternal: the checksum differs, or the document cannot be read or is another record's.
Result<void> read_record(const RecordKind& kind, const RecordRow& row, Contents* into);

/// The same; a row that cannot be read is added to Contents::unreadable.
void take_record(const RecordKind& kind, const RecordRow& row, Contents& into);

/// An audit record; of one that cannot be read, what its columns say.
access::AuditRecord read_audit_record(const RecordRow& row, uint64_t number);

Unreadable describe_unreadable(const RecordKind& kind, const RecordRow& row, std::string fault);

/// Which of `found` the name means: a job by its name, project/name or id, any other record by
/// KIND:NAME. kNotFound, kConflict.
Result<size_t> choose_unreadable(const std::vector<Unreadable>& found, const std::string& name);

/// What is wrong with a store, a sentence each; at most a hundred, because a person reads them.
class Faults {
 public:
  void add(std::string sentence);
  void check(const RecordKind& kind, const RecordRow& row);
  std::vector<std::string> take() { return std::move(sentences_); }

 private:
  std::vector<std::string> sentences_;
};

// The documents of the store: the JSON of a record as its table has it (record/table.h, the form
// kStore), kept as CBOR.
//
// Pure; thread-safe. What cannot be read is kInternal, and names every field that is at fault.

namespace detail {

std::string document_of(const record::Table& table, const void* value);
base::Result<void> read_document(std::string_view document, const record::Table& table, void* into);

}  // namespace detail

template <class T>
std::string to_document(const T& value) {
  return detail::document_of(record::table_for<T>(), &value);
}

template <class T>
base::Result<T> from_document(std::string_view document) {
  T value;
  MUSTER_CHECK(detail::read_document(document, record::table_for<T>(), &value));
  return value;
}

// How an unreadable record is found and moved into the table `set_aside`, whichever the database.
//
// Pure: makes the SQL; a caller that has the database runs it.

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
