// The store of servers that share a database: PostgreSQL, through libpq.
//
// Tables and documents are those of SqliteStore. One connection, whose session holds the advisory
// lock of the leader, so that whoever lost the lock cannot commit. A connection that breaks is
// opened anew by the next call. Where it broke during COMMIT, nobody knows whether the transaction
// took place: each carries a number, which is looked up on the new connection; a commit that was
// reported as failed and had taken place is undone before anything else is done.
//
// libpq stays inside postgres_*.cc. Blocking; threads: the loop's. Errors never hold the password.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "store/store.h"

namespace muster::store {

class PostgresStore : public Store, public Leadership {
 public:
  /// `url` is postgres://USER@HOST/DATABASE?OPTIONS as libpq understands it. Brings the schema up
  /// to date, after a backup into `backup_folder` where there is something to lose. kConflict: a
  /// newer Muster wrote it. kUnavailable: nobody answers.
  static Result<std::unique_ptr<PostgresStore>> open(const std::string& url,
                                                     const std::filesystem::path& backup_folder);
  ~PostgresStore() override;

  Result<Contents> load() override;
  Result<void> commit(const Batch& batch) override;
  Result<std::optional<std::string>> find_by_key(const std::string& idempotency_key) override;
  Result<std::vector<access::AuditRecord>> audit(const access::AuditQuery& query) override;
  Result<void> ping() override;

  Result<bool> try_to_lead(const std::string& address) override;
  Result<std::optional<std::string>> leader() override;

 private:
  struct Impl;
  explicit PostgresStore(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

/// Whether `where` is a PostgreSQL URL rather than a file.
bool is_postgres_url(const std::string& where);

}  // namespace muster::store
