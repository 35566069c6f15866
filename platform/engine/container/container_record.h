// What a server notes of a task's container, in the copy of the task's folder: the next one finds
// it again though its host does not answer.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "base/result.h"
#include "engine/shim/plan.h"

namespace muster::engine {

struct ContainerRecord {
  std::string host;       ///< its name
  std::string container;  ///< its id
  std::string artifacts;  ///< where the artifacts' folder is in it; empty: it has none

  bool operator==(const ContainerRecord&) const = default;
};

inline std::filesystem::path container_record_in(const TaskFolder& folder) {
  return folder.path / "container";
}

std::string encode(const ContainerRecord& record);
base::Result<ContainerRecord> decode_container_record(std::string_view json);

}  // namespace muster::engine
