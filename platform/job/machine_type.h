// Machines by name, as clouds sell them: p2.xlarge, V100. A name stands for what a task claims.
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
  /// Zero means: no claim, so that a small machine may stand in for a large one.
  Resources resources;
  std::string gpu_model;  ///< for people; where it runs is not decided by it

  bool operator==(const MachineType&) const = default;
};
const record::Table& table_of(const MachineType*);

using MachineTypes = std::map<std::string, MachineType, std::less<>>;

/// The names that Gradient's documents use, with their GPUs and no other claim.
const MachineTypes& usual_machine_types();

/// `own` over the usual ones.
MachineTypes machine_types_with(const MachineTypes& own);

/// By its name, in any case. kInvalid with the nearest names.
base::Result<MachineType> find_machine_type(const MachineTypes& types, std::string_view name);

/// What an engine that runs no images has in the place of one.
struct ImageStandIn {
  std::vector<std::string> command;                ///< what the image runs of its own accord
  std::string folder;                              ///< working folder; empty: the job's
  std::map<std::string, std::string> environment;  ///< below the job's

  bool operator==(const ImageStandIn&) const = default;
};
/// In the human form a command may be one text, which `sh -c` runs.
const record::Table& table_of(const ImageStandIn*);

/// By the image's name, with its tag; or without, for all its tags.
using ImageStandIns = std::map<std::string, ImageStandIn, std::less<>>;

/// nullptr where the image has none.
const ImageStandIn* find_stand_in(const ImageStandIns& all, std::string_view image);

}  // namespace muster::job
