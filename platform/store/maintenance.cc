#include "store/maintenance.h"

#include "store/postgres_maintenance.h"
#include "store/postgres_store.h"
#include "store/sqlite_maintenance.h"

namespace muster::store {

using base::Error;
using base::ErrorCode;
using base::Result;

namespace {

/// Fills `copy` with all of `store`, in the present schema.
Result<void> fill(SqliteDatabase& copy, const std::string& store) {
  if (is_postgres_url(store)) return copy_out_of_postgres(store, copy);
  return copy_out_of_sqlite(store, copy);
}

Result<StoreSummary> write_backup(const std::string& store, const std::filesystem::path& file) {
  MUSTER_TRY(SqliteDatabase copy, SqliteDatabase::open(file, SqliteDatabase::Mode::kMake));
  MUSTER_CHECK(fill(copy, store));
  MUSTER_CHECK(copy.execute("PRAGMA journal_mode = DELETE"));  // one file, without -wal
  return summary_of(copy);
}

}  // namespace

Result<StoreSummary> backup_store(const std::string& store, const std::filesystem::path& file) {
  // Written under another name: what is called as was asked for is whole.
  const std::filesystem::path partial = file.string() + ".partial";
  std::error_code failed;
  if (std::filesystem::exists(file, failed)) {
    return Error{.code = ErrorCode::kConflict,
                 .what = "'" + file.string() + "' is there already",
                 .advice = "name a file that is not"};
  }
  std::filesystem::remove(partial, failed);
  Result<StoreSummary> written = write_backup(store, partial);
  if (written) {
    // Unlike a renaming this takes nothing away that came meanwhile.
    std::filesystem::create_hard_link(partial, file, failed);
    if (failed) written = base::system_error("cannot make '" + file.string() + "'", failed.value());
  }
  std::filesystem::remove(partial, failed);
  return written;
}

Result<StoreSummary> restore_store(const std::filesystem::path& file, const std::string& store) {
  MUSTER_TRY(SqliteDatabase backup, open_backup(file));
  if (is_postgres_url(store)) {
    MUSTER_CHECK(copy_into_postgres(backup, store, file.parent_path()));
  } else {
    MUSTER_CHECK(copy_into_sqlite(backup, store));
  }
  return summary_of(backup);
}

Result<StoreCheck> check_store(const std::string& store) {
  return is_postgres_url(store) ? check_postgres(store) : check_sqlite(store);
}

Result<StoreCheck> set_aside_record(const std::string& store, const std::string& name,
                                    base::Time now) {
  if (is_postgres_url(store)) {
    MUSTER_CHECK(set_aside_in_postgres(store, name, now));
  } else {
    MUSTER_CHECK(set_aside_in_sqlite(store, name, now));
  }
  return check_store(store);
}

}  // namespace muster::store
