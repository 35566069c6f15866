// The store of servers that share a database: PostgreSQL, through libpq.
//
// Tables and documents are those of SqliteStore. There is one connection, whose session holds the
// leader's advisory lock: a server that lost the lock cannot commit. If the connection breaks, the
// next call opens another. If it breaks during COMMIT, the result is unknown: each transaction has
// a number, which is looked up on the new connection, and a commit that was reported as failed but
// succeeded is undone first.
//
// Only postgres_*.cc use libpq. Blocking; threads: the loop's. Errors never contain the password.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "store/store.h"

namespace muster::store {

class PostgresStore : public Store, public Leadership {
 public:
  /// `url` is postgres://USER@HOST/DATABASE?OPTIONS, as for libpq. Migrates the schema, after a
  /// backup of a database that is not empty into `backup_folder`; if a server leads on an older
  /// schema, only once this store takes the lead: until then it can do nothing else. kConflict: a
  /// newer release wrote it. kUnavailable: the database does not answer. `password` takes
  /// precedence over the URL's.
  static Result<std::unique_ptr<PostgresStore>> open(const std::string& url,
                                                     const std::filesystem::path& backup_folder,
                                                     PasswordSource password = {});
  ~PostgresStore() override;

  Result<Contents> load() override;
  Result<Contents> load_packed() override;
  Result<void> commit(const Batch& batch) override;
  Result<std::optional<std::string>> find_by_key(const std::string& idempotency_key) override;
  Result<std::vector<access::AuditRecord>> audit(const access::AuditQuery& query) override;
  Result<void> ping() override;

  Result<bool> try_to_lead(const std::string& address) override;
  Result<std::optional<LeadHolder>> leader() override;

 private:
  struct Impl;
  explicit PostgresStore(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

/// Whether `where` is a PostgreSQL URL; otherwise it is a file.
bool is_postgres_url(const std::string& where);

}  // namespace muster::store
