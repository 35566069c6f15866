#include "store/set_aside.h"

#include "base/text.h"

namespace muster::store {

MoveStatements move_statements(const RecordKind& kind, char sign) {
  const auto parameter = [&](size_t number) { return sign + std::to_string(number); };
  std::string where = " WHERE ";
  for (size_t i = 0; i < kind.key.size(); ++i) {
    where += (i == 0 ? "" : " AND ") + std::string(kind.key[i]) + " = " + parameter(i + 1);
  }
  const size_t behind = kind.key.size();
  const std::string from = std::string(" FROM ") + kind.table + where;
  return {.insert =
              "INSERT INTO set_aside (number, time, title, fault, source, sequence, id, project,"
              " name, idempotency_key, document, checksum)"
              " SELECT (SELECT coalesce(max(number), 0) + 1 FROM set_aside), CAST(" +
              parameter(behind + 1) + " AS BIGINT), CAST(" + parameter(behind + 2) +
              " AS TEXT), CAST(" + parameter(behind + 3) + " AS TEXT), '" + kind.table + "', " +
              kind.kept + from,
          .remove = "DELETE" + from};
}

std::string set_aside_sentence(std::string_view title, std::string_view fault, int64_t time) {
  return std::string(title) + ", set aside " +
         base::to_rfc3339(base::Time(std::chrono::nanoseconds(time)), 0) + ": " +
         std::string(fault);
}

}  // namespace muster::store
