// The store of a single server: SQLite in WAL mode with synchronous=FULL.
//
// A job is one row: what is searched has columns of its own, the rest is one document, for a
// job is always read and written whole. The schema's version is in PRAGMA user_version.
#pragma once

#include <filesystem>
#include <memory>

#include "store/store.h"

struct sqlite3;
struct sqlite3_stmt;

namespace muster::store {

class SqliteStore : public Store {
 public:
  /// Opens or makes the database (0600). kConflict: a newer Muster wrote it.
  static Result<std::unique_ptr<SqliteStore>> open(const std::filesystem::path& file);

  Result<std::vector<job::Job>> load() override;
  Result<void> insert(const job::Job& job, const std::string& idempotency_key) override;
  Result<std::optional<std::string>> find_by_key(const std::string& idempotency_key) override;
  Result<void> update(const job::Job& job) override;
  Result<void> remove(const std::string& id) override;

 private:
  struct Close {
    void operator()(sqlite3* database) const;
    void operator()(sqlite3_stmt* statement) const;
  };
  using Database = std::unique_ptr<sqlite3, Close>;
  using Statement = std::unique_ptr<sqlite3_stmt, Close>;

  explicit SqliteStore(Database database) : database_(std::move(database)) {}
  Result<void> prepare_schema();
  Result<void> execute(const char* sql);
  Result<Statement> prepare(const char* sql);
  /// One step; true: a row is there.
  Result<bool> step(const Statement& statement);
  base::Error error(const char* what) const;

  Database database_;
};

}  // namespace muster::store
