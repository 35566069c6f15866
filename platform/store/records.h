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

#include "base/result.h"
#include "store/store.h"

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

}  // namespace muster::store
