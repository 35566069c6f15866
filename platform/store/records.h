// The kinds of records in a store: their columns, how a row is verified and read, how an unreadable
// row is named and set aside, and the documents (CBOR) that hold most of a record.
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
#include "job/notification.h"
#include "job/project.h"
#include "store/store.h"
#include "words/job_table.h"

namespace muster::store {

/// CRC-32 of the columns, each preceded by its length; never negative. The document is the last
/// one.
int64_t checksum_of(std::span<const std::string_view> columns);
inline int64_t checksum_of(std::initializer_list<std::string_view> columns) {
  return checksum_of(std::span(columns.begin(), columns.size()));
}
int64_t checksum_of(const job::Job& job, std::string_view document);
int64_t checksum_of(const Object& object);
int64_t checksum_of(const job::Project& project, std::string_view document);
int64_t checksum_of(const access::AuditRecord& record, std::string_view document);
/// The checksum of a node_setting, which only records that the node is cordoned.
int64_t checksum_of_cordon(std::string_view node);

/// A row of a database, which owns the bytes.
struct RecordRow {
  std::vector<std::string_view> key;  ///< in the order of RecordKind::key
  std::string_view document;
  int64_t checksum = 0;
  std::string_view facts = {};  ///< of a job, in the rows of packed_jobs_query(): stored_facts()
};

/// A table and the kind of its records.
struct RecordKind {
  const char* table;
  const char* noun;  ///< "job"; also the prefix by which a record is named: "user:ada"
  /// SQL for both databases, as texts: the columns that identify the record, and other indexed
  /// ones.
  std::vector<const char*> key;
  const char* document;  ///< SQL: the column with the document
  const char* order;     ///< SQL
  /// SQL: the row as the table `set_aside` keeps it: its sequence, id, project, name, idempotency
  /// key, document and checksum.
  const char* kept;
  /// Reads the document, compares it with the key, and appends the record to `into` unless that is
  /// nullptr.
  Result<void> (*read)(const RecordRow& row, Contents* into);

  /// "SELECT key..., document, checksum FROM table ORDER BY order".
  std::string query() const;
};

/// All kinds except the audit log, in the order in which Contents is filled.
extern const std::span<const RecordKind> kRecordKinds;
extern const RecordKind kAuditKind;
/// Of kRecordKinds, that of the jobs.
const RecordKind& job_kind();
/// job_kind().query() with the facts behind the other columns, and then `more`: "" or ", column".
std::string packed_jobs_query(const char* more = "");

/// kInternal: the checksum differs.
Result<void> verify_record(const RecordRow& row);

/// Verifies and reads a row. `into` may be nullptr: the row is only checked.
/// kInternal: the checksum differs, or the document is unreadable or belongs to another record.
Result<void> read_record(const RecordKind& kind, const RecordRow& row, Contents* into);

/// The same; an unreadable row is added to Contents::unreadable.
void take_record(const RecordKind& kind, const RecordRow& row, Contents& into);

/// An audit record; if its document is unreadable, a record made from its columns.
access::AuditRecord read_audit_record(const RecordRow& row, uint64_t number);

// SQL of both databases for searches in the audit log, which may have millions of records: each part
// reads an index.

/// The actions of the audit log that begin with a text; `kind`: the SQL parameter with the text.
std::string audit_actions_query(const std::string& kind);
/// A condition that holds for the records since a time; `since`: the SQL parameter with the time.
std::string audit_since_condition(const std::string& since);
/// The newest records of each of the actions. `newest`: SELECT with the condition, an order and a
/// limit; `order`: the order and the limit of all of them.
std::string audit_of_actions(const std::vector<std::string>& newest, const std::string& order);

Unreadable describe_unreadable(const RecordKind& kind, const RecordRow& row, std::string fault);

/// The index in `found` of the record with this name: a job by name, project/name or id, another
/// record by KIND:NAME. kNotFound; kConflict: several records have the name.
Result<size_t> choose_unreadable(const std::vector<Unreadable>& found, const std::string& name);

/// The faults of a store, one sentence each; at most a hundred.
class Faults {
 public:
  void add(std::string sentence);
  void check(const RecordKind& kind, const RecordRow& row);
  std::vector<std::string> take() { return std::move(sentences_); }

 private:
  std::vector<std::string> sentences_;
};

// Documents: the JSON of a record by its table (record/table.h, form kStore), stored as CBOR.
// Errors are kInternal and name every invalid field. Thread-safe.

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

// Setting unreadable records aside: finding them, and the SQL that moves them into the table
// `set_aside`.

/// The unreadable records of a store, with the keys of their rows.
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

  /// Errors are those of choose_unreadable().
  Result<Found> choose(const std::string& name) const {
    std::vector<Unreadable> records;
    for (const Found& found : found_) records.push_back(found.record);
    MUSTER_TRY(const size_t index, choose_unreadable(records, name));
    return found_[index];
  }

 private:
  std::vector<Found> found_;
};

/// SQL with parameters 1 to n: the columns of the key; `insert` also has the time, the title and
/// the fault. `sign` begins a parameter: '?' or '$'.
struct MoveStatements {
  std::string insert;
  std::string remove;
};
MoveStatements move_statements(const RecordKind& kind, char sign);

/// The line that a listing prints for a row of `set_aside`.
std::string set_aside_sentence(std::string_view title, std::string_view fault, int64_t time);
inline constexpr const char* kSetAsideQuery =
    "SELECT title, fault, time FROM set_aside ORDER BY number";

}  // namespace muster::store
