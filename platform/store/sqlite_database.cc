#include "store/sqlite_database.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <fstream>
#include <sstream>
#include <system_error>

#include "base/unique_fd.h"

namespace muster::store {

using base::Error;
using base::ErrorCode;

namespace {

// Long enough for a short write by a backup or a shell, and short enough for the server's loop.
constexpr int kBusyTimeoutMs = 1'000;

std::string file_of(sqlite3* database) {
  const char* file = database == nullptr ? nullptr : sqlite3_db_filename(database, "main");
  return file == nullptr ? std::string() : file;
}

std::string subject(const std::string& file) {
  return file.empty() ? "the database" : "the database '" + file + "'";
}

Error busy(const std::string& file) {
  // A writer's lock is on the -shm file, an exclusive lock on the database file.
  auto holder = lock_holder(file + "-shm");
  if (!holder) holder = lock_holder(file);
  return {.code = ErrorCode::kUnavailable,
          .what = subject(file) + " is locked by " + holder.value_or("another process"),
          .advice = holder ? "end that process, or wait until it has finished"
                           : "end that process, or wait until it has finished; `fuser " + file +
                                 "` names it"};
}

Error damaged(const std::string& file, const std::string& detail) {
  return {.code = ErrorCode::kInternal,
          .what = subject(file) + " is damaged: " + detail,
          .advice =
              "`muster store check` shows the damage; stop the server, move the file away and "
              "restore the last backup with `muster store restore`"};
}

/// Whether the file is the whole database and cannot change: its folder is read-only, and there is
/// no write-ahead log. To read a database in WAL mode, SQLite creates files beside it, unless the
/// database is declared immutable.
bool lies_still(const std::filesystem::path& file) {
  const std::filesystem::path folder = file.has_parent_path() ? file.parent_path() : ".";
  std::error_code failed;
  const auto log_size = std::filesystem::file_size(file.string() + "-wal", failed);
  return (failed || log_size == 0) && ::access(folder.c_str(), W_OK) != 0;
}

/// "file:///var/lib/muster/muster.db?immutable=1"
std::string immutable_uri(const std::filesystem::path& file) {
  constexpr std::string_view kPlain =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789/._-";
  std::string uri = "file:";
  for (const char letter : std::filesystem::absolute(file).string()) {
    if (kPlain.find(letter) != std::string_view::npos) {
      uri += letter;
      continue;
    }
    constexpr std::string_view kDigits = "0123456789ABCDEF";
    const auto byte = static_cast<unsigned char>(letter);
    uri += {'%', kDigits[byte >> 4U], kDigits[byte & 15U]};
  }
  return uri + "?immutable=1";
}

/// Whether a file of the database has reached the limit of file sizes (ulimit -f). SQLite reports this
/// as any failure to write, and does not keep the error of the system.
bool is_as_large_as_allowed(const std::string& file) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return false;
  constexpr uintmax_t kLargestPage = 64 << 10;
  for (const char* suffix : {"", "-wal"}) {
    std::error_code failed;
    const uintmax_t size = std::filesystem::file_size(file + suffix, failed);
    if (!failed && size + kLargestPage > limit.rlim_cur) return true;
  }
  return false;
}

}  // namespace

Error sqlite_error(sqlite3* database, const std::string& what) {
  const std::string file = file_of(database);
  const std::string message = database == nullptr ? "out of memory" : sqlite3_errmsg(database);
  const std::string sentence = subject(file) + ": " + what + ": " + message;
  switch (database == nullptr ? SQLITE_NOMEM : sqlite3_errcode(database)) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return busy(file);
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return damaged(file, message);
    case SQLITE_FULL:
      return {.code = ErrorCode::kExhausted,
              .what = subject(file) + " has no room to grow: " + message,
              .advice =
                  "free disk space there, as with muster delete; until then the server "
                  "stores no changes, and keeps all earlier ones"};
    case SQLITE_READONLY:
      return {.code = ErrorCode::kRefused,
              .what = subject(file) + " cannot be written: " + message,
              .advice = "make the file and its folder writable for the server's user"};
    case SQLITE_CANTOPEN:
      return {.code = ErrorCode::kRefused,
              .what = subject(file) + " cannot be opened: " + message,
              .advice =
                  "SQLite creates files beside it ('-wal', '-shm'): make its folder writable, or "
                  "copy all three files to a writable folder"};
    case SQLITE_CONSTRAINT:
      return {.code = ErrorCode::kConflict, .what = sentence};
    case SQLITE_IOERR:
      if (is_as_large_as_allowed(file)) {
        return {.code = ErrorCode::kExhausted,
                .what = subject(file) + " has no room to grow: its files may not become larger",
                .advice =
                    "raise the server's limit of file sizes (ulimit -f, LimitFSIZE= of a "
                    "service)"};
      }
      return {.code = ErrorCode::kInternal,
              .what = sentence,
              .advice = "its disk failed to read or write; see the kernel's log"};
    case SQLITE_NOMEM:
      return {.code = ErrorCode::kExhausted, .what = sentence};
    default:
      return {.code = ErrorCode::kInternal, .what = sentence};
  }
}

void SqliteStatement::Finalize::operator()(sqlite3_stmt* statement) const {
  sqlite3_finalize(statement);
}

SqliteStatement& SqliteStatement::text(int index, std::string_view text) {
  // A null pointer would bind NULL.
  sqlite3_bind_text(statement_.get(), index, text.empty() ? "" : text.data(),
                    static_cast<int>(text.size()), SQLITE_STATIC);
  return *this;
}

SqliteStatement& SqliteStatement::blob(int index, std::string_view bytes) {
  sqlite3_bind_blob(statement_.get(), index, bytes.empty() ? "" : bytes.data(),
                    static_cast<int>(bytes.size()), SQLITE_STATIC);
  return *this;
}

SqliteStatement& SqliteStatement::number(int index, int64_t number) {
  sqlite3_bind_int64(statement_.get(), index, number);
  return *this;
}

SqliteStatement& SqliteStatement::null(int index) {
  sqlite3_bind_null(statement_.get(), index);
  return *this;
}

Result<bool> SqliteStatement::step() {
  const int result = sqlite3_step(statement_.get());
  if (result == SQLITE_ROW) return true;
  if (result == SQLITE_DONE) return false;
  return sqlite_error(sqlite3_db_handle(statement_.get()), sqlite3_sql(statement_.get()));
}

Result<void> SqliteStatement::run() {
  Result<bool> done = step();
  reset();
  if (!done) return std::move(done).error();
  return {};
}

void SqliteStatement::reset() {
  sqlite3_reset(statement_.get());
}

std::string_view SqliteStatement::bytes(int column) const {
  return {static_cast<const char*>(sqlite3_column_blob(statement_.get(), column)),
          static_cast<size_t>(sqlite3_column_bytes(statement_.get(), column))};
}

int64_t SqliteStatement::number(int column) const {
  return sqlite3_column_int64(statement_.get(), column);
}

bool SqliteStatement::is_null(int column) const {
  return sqlite3_column_type(statement_.get(), column) == SQLITE_NULL;
}

RecordRow SqliteStatement::record(size_t key_size) const {
  RecordRow row;
  const auto document = static_cast<int>(key_size);
  for (int column = 0; column < document; ++column) row.key.push_back(bytes(column));
  row.document = bytes(document);
  row.checksum = number(document + 1);
  if (sqlite3_column_count(statement_.get()) > document + 2) row.facts = bytes(document + 2);
  return row;
}

void SqliteDatabase::Close::operator()(sqlite3* database) const {
  sqlite3_close(database);
}

Result<SqliteDatabase> SqliteDatabase::open(const std::filesystem::path& file, Mode mode) {
  // SQLite would create the file with the umask's mode; -wal and -shm get the mode of the file. It
  // would open a write-protected file as read-only, and fail only at the first commit.
  const int flags = mode == Mode::kMake    ? O_RDWR | O_CREAT
                    : mode == Mode::kWrite ? O_RDWR
                                           : O_RDONLY;
  const base::UniqueFd made(::open(file.c_str(), flags | O_CLOEXEC, 0600));
  if (!made) return base::system_error("cannot open the database '" + file.string() + "'", errno);
  if (mode == Mode::kReadOnly && lies_still(file)) {
    return open_raw(immutable_uri(file), SQLITE_OPEN_READONLY | SQLITE_OPEN_URI);
  }
  return open_raw(file.string(),
                  mode == Mode::kReadOnly ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE);
}

Result<SqliteDatabase> SqliteDatabase::temporary() {
  return open_raw("", SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE);
}

Result<SqliteDatabase> SqliteDatabase::open_raw(const std::string& name, int flags) {
  sqlite3* raw = nullptr;
  SqliteDatabase opened;
  const int result = sqlite3_open_v2(name.c_str(), &raw, flags, nullptr);
  opened.database_.reset(raw);
  if (result != SQLITE_OK) return opened.error("cannot be opened");
  sqlite3_busy_timeout(raw, kBusyTimeoutMs);
  return opened;
}

Result<void> SqliteDatabase::execute(const std::string& sql) {
  if (sqlite3_exec(raw(), sql.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK) return error(sql);
  return {};
}

Result<SqliteStatement> SqliteDatabase::prepare(const std::string& sql) {
  sqlite3_stmt* statement = nullptr;
  if (sqlite3_prepare_v2(raw(), sql.c_str(), -1, &statement, nullptr) != SQLITE_OK) {
    return error(sql);
  }
  return SqliteStatement(statement);
}

Result<void> SqliteDatabase::each_row(const std::string& sql, const Take& take) {
  MUSTER_TRY(SqliteStatement select, prepare(sql));
  while (true) {
    MUSTER_TRY(const bool there, select.step());
    if (!there) return {};
    MUSTER_CHECK(take(select));
  }
}

Result<int64_t> SqliteDatabase::number(const std::string& sql) {
  MUSTER_TRY(SqliteStatement select, prepare(sql));
  MUSTER_CHECK(select.step());
  return select.number(0);
}

std::string SqliteDatabase::file() const {
  return file_of(raw());
}

Result<void> SqliteDatabase::copy_to(SqliteDatabase& target) const {
  sqlite3_backup* backup = sqlite3_backup_init(target.raw(), "main", raw(), "main");
  if (backup == nullptr) return target.error("cannot be overwritten");
  const int stepped = sqlite3_backup_step(backup, -1);
  const int finished = sqlite3_backup_finish(backup);
  if (stepped == SQLITE_DONE && finished == SQLITE_OK) return {};
  // The target keeps the error, even an error in reading from here.
  return target.error("copying '" + file() + "'");
}

namespace {

/// "08:01:1835043", as /proc/locks writes it.
std::optional<std::string> inode_of(const std::filesystem::path& file) {
  struct stat status{};
  if (::stat(file.c_str(), &status) != 0) return std::nullopt;
  char text[64];
  std::snprintf(text, sizeof text, "%02x:%02x:%lu", major(status.st_dev), minor(status.st_dev),
                static_cast<unsigned long>(status.st_ino));
  return text;
}

std::string describe(int pid) {
  std::string name;
  std::getline(std::ifstream("/proc/" + std::to_string(pid) + "/comm"), name);
  return "process " + std::to_string(pid) + (name.empty() ? "" : " (" + name + ")");
}

}  // namespace

// A line: "2: POSIX  ADVISORY  WRITE 4711 08:01:1835043 120 120"; a process that waits for the lock
// has "->" in second place.
std::optional<std::string> lock_holder(const std::filesystem::path& file) {
  const auto inode = inode_of(file);
  if (!inode) return std::nullopt;
  std::ifstream locks("/proc/locks");
  for (std::string line; std::getline(locks, line);) {
    std::istringstream words(line);
    std::string number;
    std::string type;
    std::string strictness;
    std::string mode;
    std::string where;
    int pid = 0;
    words >> number >> type >> strictness >> mode >> pid >> where;
    if (words && mode == "WRITE" && pid > 0 && pid != ::getpid() && where == *inode) {
      return describe(pid);
    }
  }
  return std::nullopt;
}

}  // namespace muster::store
