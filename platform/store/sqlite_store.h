// The store of a single server: SQLite in WAL mode with synchronous=FULL.
//
// A job is one row: what is searched has columns of its own, the rest is one document, for a
// job is always read and written whole. The schema's version is in PRAGMA user_version; an older
// database is brought up to date when it is opened.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "store/store.h"

struct sqlite3;
struct sqlite3_stmt;

namespace muster::store {

class SqliteStore : public Store {
 public:
  /// Opens or makes the database (0600). kConflict: a newer Muster wrote it.
  static Result<std::unique_ptr<SqliteStore>> open(const std::filesystem::path& file);
  ~SqliteStore() override;

  Result<Contents> load() override;
  Result<void> commit(const Batch& batch) override;
  Result<std::optional<std::string>> find_by_key(const std::string& idempotency_key) override;

 private:
  struct Close {
    void operator()(sqlite3* database) const;
    void operator()(sqlite3_stmt* statement) const;
  };
  using Database = std::unique_ptr<sqlite3, Close>;
  using Statement = std::unique_ptr<sqlite3_stmt, Close>;
  struct Statements;

  explicit SqliteStore(Database database);
  Result<void> bring_schema_up_to_date();
  Result<void> prepare_statements();
  Result<void> execute(const char* sql);
  Result<Statement> prepare(const char* sql);
  /// One step; true: a row is there.
  Result<bool> step(const Statement& statement);
  /// A statement that gives no row, ready to be used again.
  Result<void> run(const Statement& statement);
  /// Hands over the first column of every row.
  using Take = std::function<Result<void>(std::string_view)>;
  Result<void> each_row(const char* sql, const Take& take);
  base::Error error(const char* what) const;

  Result<void> write(const Batch& batch);
  Result<void> insert(const NewJob& job);
  Result<void> update(const job::Job& job);
  Result<void> run_by_name(const Statement& statement, const std::string& name);
  Result<void> put(const job::Project& project);

  Database database_;
  std::unique_ptr<Statements> statements_;  ///< closed before the database is
};

}  // namespace muster::store
