#include "cli/fields.h"

#include "cli/table.h"

namespace muster::cli {

std::string fields(const std::vector<std::pair<std::string, std::string>>& entries) {
  Table table({{""}, {""}});
  for (const auto& [key, value] : entries) {
    if (!value.empty()) table.add({key, value});
  }
  const std::string text = table.to_string();
  return text.substr(text.find('\n') + 1);  // without the empty titles
}

}  // namespace muster::cli
