// One connection to a SQLite database, and its statements: as much of SQLite as the store uses,
// with errors that name the file and say what to do.
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

/// What the last call on a database failed with. kUnavailable: another process has it locked.
/// kExhausted: no room. kRefused: it is read-only, or lies where SQLite cannot make the files that
/// it needs beside it. kInternal: it is damaged, among others.
base::Error sqlite_error(sqlite3* database, const std::string& what);

class SqliteStatement {
 public:
  SqliteStatement() = default;
  explicit SqliteStatement(sqlite3_stmt* statement) : statement_(statement) {}

  // Binding copies nothing: the bytes must live until the statement was run. The first is 1.
  SqliteStatement& text(int index, std::string_view text);
  SqliteStatement& blob(int index, std::string_view bytes);
  SqliteStatement& number(int index, int64_t number);
  SqliteStatement& null(int index);

  /// True: a row is there.
  Result<bool> step();
  /// One that gives no row; ready to be used again.
  Result<void> run();
  /// Forgets its rows and what was bound.
  void reset();

  // Of the row that is there. The first is 0; bytes live until the next step().
  std::string_view bytes(int column) const;
  int64_t number(int column) const;
  bool is_null(int column) const;
  /// Of a row that begins with the columns of RecordKind::query(): `key_size` texts, the document
  /// and the checksum.
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
    kMake,      ///< reads and writes; made (0600) where it is missing
    kWrite,     ///< reads and writes; kNotFound where it is missing
    kReadOnly,  ///< kNotFound where it is missing
  };
  static Result<SqliteDatabase> open(const std::filesystem::path& file, Mode mode);
  /// An empty one that goes with the connection.
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

  /// Overwrites `target` with all of this, as of one moment, whoever uses this meanwhile.
  Result<void> copy_to(SqliteDatabase& target) const;

 private:
  struct Close {
    void operator()(sqlite3* database) const;
  };
  static Result<SqliteDatabase> open_raw(const std::string& name, int flags);

  std::unique_ptr<sqlite3, Close> database_;
};

// Who holds a lock on a file.
//
// I/O: reads /proc.

/// "process 4711 (sqlite3)": one other than this that holds a write lock on any part of `file`, as
/// far as the kernel tells. Looks it up in /proc/locks: fcntl(F_GETLK) would need the file opened,
/// and closing it would drop the locks that this process itself has on it.
std::optional<std::string> lock_holder(const std::filesystem::path& file);

}  // namespace muster::store
