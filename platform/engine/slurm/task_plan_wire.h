// The plans that a muster-node is sent, as CBOR: what one task is started with, what changes in it
// while it runs, and a program beside it.
//
// Reading throws BadField (wire_fields.h) where something is not as it is written. Pure.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "engine/engine.h"
#include "launch/task_plan.h"

namespace muster::engine::slurm {

nlohmann::json to_json(const launch::TaskPlan& plan);
launch::TaskPlan task_plan_of(const nlohmann::json& value);

nlohmann::json to_json(const launch::FileChange& change);
launch::FileChange file_change_of(const nlohmann::json& value);

nlohmann::json to_json(const ExecPlan& plan);
ExecPlan exec_plan_of(const nlohmann::json& value);

}  // namespace muster::engine::slurm
