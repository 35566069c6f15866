// Machine types of clouds, such as p2.xlarge and V100: each stands for the claim of a task.
//
// Pure.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "job/spec.h"
#include "record/table.h"

namespace muster::job {

struct MachineType {
  /// Zero: no claim, so that a small machine can be used instead of a large one.
  Resources resources;
  std::string gpu_model;  ///< for people; it does not restrict the nodes

  bool operator==(const MachineType&) const = default;
};
const record::Table& table_of(const MachineType*);

using MachineTypes = std::map<std::string, MachineType, std::less<>>;

/// The names that Gradient's documents use, with their GPUs and no other claim.
const MachineTypes& usual_machine_types();

/// `own` overrides the usual types.
MachineTypes machine_types_with(const MachineTypes& own);

/// By name, ignoring case. kInvalid: unknown, with the nearest names.
base::Result<MachineType> find_machine_type(const MachineTypes& types, std::string_view name);

/// The replacement for an image on engines that do not run images.
struct ImageStandIn {
  std::vector<std::string> command;                ///< the image's default command
  std::string folder;                              ///< working folder; empty: the job's
  std::map<std::string, std::string> environment;  ///< overridden by the job's

  bool operator==(const ImageStandIn&) const = default;
};
/// In a job file, a command may be a single text, which `sh -c` runs.
const record::Table& table_of(const ImageStandIn*);

/// By the image's name with its tag, or without a tag for all its tags.
using ImageStandIns = std::map<std::string, ImageStandIn, std::less<>>;

/// nullptr: the image has none.
const ImageStandIn* find_stand_in(const ImageStandIns& all, std::string_view image);

}  // namespace muster::job
