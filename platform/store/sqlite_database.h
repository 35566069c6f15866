// A connection to a SQLite database, and its statements: the parts of SQLite that the store uses,
// with errors that name the file and give advice.
//
// Threads: one at a time. A statement must not outlive its database.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "store/records.h"

struct sqlite3;
struct sqlite3_stmt;

namespace muster::store {

using base::Result;

/// The error of the last call on a database. kUnavailable: another process has locked it.
/// kExhausted: the disk is full. kRefused: it is read-only, or SQLite cannot create its files
/// beside it. kInternal: it is damaged, or another error.
base::Error sqlite_error(sqlite3* database, const std::string& what);

class SqliteStatement {
 public:
  SqliteStatement() = default;
  explicit SqliteStatement(sqlite3_stmt* statement) : statement_(statement) {}

  // Binding does not copy: the bytes must live until the statement was run. Parameters count from
  // 1.
  SqliteStatement& text(int index, std::string_view text);
  SqliteStatement& blob(int index, std::string_view bytes);
  SqliteStatement& number(int index, int64_t number);
  SqliteStatement& null(int index);

  /// True: there is a row.
  Result<bool> step();
  /// Runs a statement without rows, and resets it.
  Result<void> run();
  /// Resets the statement and its parameters.
  void reset();

  // Columns of the present row, which count from 0; bytes live until the next step().
  std::string_view bytes(int column) const;
  int64_t number(int column) const;
  bool is_null(int column) const;
  /// The record of a row that begins with the columns of RecordKind::query(): `key_size` texts, the
  /// document and the checksum.
  RecordRow record(size_t key_size) const;

 private:
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const;
  };
  std::unique_ptr<sqlite3_stmt, Finalize> statement_;
};

class SqliteDatabase {
 public:
  enum class Mode {
    kMake,      ///< reads and writes; creates a missing file (0600)
    kWrite,     ///< reads and writes; a missing file is kNotFound
    kReadOnly,  ///< a missing file is kNotFound
  };
  static Result<SqliteDatabase> open(const std::filesystem::path& file, Mode mode);
  /// An empty database in memory.
  static Result<SqliteDatabase> temporary();

  Result<void> execute(const std::string& sql);
  Result<SqliteStatement> prepare(const std::string& sql);
  using Take = std::function<Result<void>(const SqliteStatement& row)>;
  Result<void> each_row(const std::string& sql, const Take& take);
  /// The only value of the only row.
  Result<int64_t> number(const std::string& sql);

  base::Error error(const std::string& what) const { return sqlite_error(database_.get(), what); }
  sqlite3* raw() const { return database_.get(); }
  std::string file() const;

  /// Overwrites `target` with a consistent copy of this database, even while it is in use.
  Result<void> copy_to(SqliteDatabase& target) const;

 private:
  struct Close {
    void operator()(sqlite3* database) const;
  };
  static Result<SqliteDatabase> open_raw(const std::string& name, int flags);

  std::unique_ptr<sqlite3, Close> database_;
};

/// "process 4711 (sqlite3)": another process that holds a write lock on any part of `file`, by
/// /proc/locks. fcntl(F_GETLK) would require opening the file, and closing it would release the
/// locks of this process.
std::optional<std::string> lock_holder(const std::filesystem::path& file);

}  // namespace muster::store
