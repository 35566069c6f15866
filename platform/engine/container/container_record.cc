#include "engine/container/container_record.h"

#include <nlohmann/json.hpp>

namespace muster::engine {

std::string encode(const ContainerRecord& record) {
  return nlohmann::json{{"host", record.host},
                        {"container", record.container},
                        {"artifacts", record.artifacts}}
             .dump() +
         "\n";
}

base::Result<ContainerRecord> decode_container_record(std::string_view json) {
  try {
    const auto read = nlohmann::json::parse(json);
    return ContainerRecord{.host = read.at("host"),
                           .container = read.at("container"),
                           .artifacts = read.value("artifacts", "")};
  } catch (const nlohmann::json::exception&) {
    return base::Error{.what = "the record of a task's container cannot be read"};
  }
}

}  // namespace muster::engine
