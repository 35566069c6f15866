// What a simulation found, for people and for programs.
//
// Pure.
#pragma once

#include <string>
#include <vector>

#include "cli/simulate.h"
#include "simulate/openb.h"
#include "simulate/scenario_run.h"
#include "simulate/trace_replay.h"

namespace muster::cli {

std::string scenarios_json(const std::vector<simulate::Verdict>& verdicts);
std::string openb_json(const simulate::OpenbResult& result);

std::string trace_text(const SimulateTrace& command, const simulate::TraceReport& report);
std::string trace_json(const SimulateTrace& command, const simulate::TraceReport& report);
/// What the chart is called: "4 nodes of 8 GPUs, policy fair".
std::string trace_title(const SimulateTrace& command);

}  // namespace muster::cli
