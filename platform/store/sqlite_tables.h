// What tables a SQLite database has, as it says itself: whoever copies rows need not know them.
//
// I/O.
#pragma once

#include <string>
#include <vector>

#include "store/sqlite_database.h"

namespace muster::store {

struct TableColumn {
  std::string name;
  enum class Type { kNumber, kText, kBytes } type = Type::kBytes;
};

struct Table {
  std::string name;
  std::vector<TableColumn> columns;

  /// "sequence, id, project": of every column.
  std::string column_list() const;
};

/// By name.
Result<std::vector<Table>> tables_of(SqliteDatabase& database);

}  // namespace muster::store
