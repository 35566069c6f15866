// Which colour a task or a rank has where lines of several are shown.
//
// Pure.
#pragma once

#include <string_view>

#include "job/log_record.h"

namespace muster::cli {

/// The escape sequence of its colour: the same in every run, whoever prints first. Ranks and
/// workers take the colours in order behind that of the leader, parameter servers from the other
/// end: no two tasks of a job share one before all are taken.
std::string_view colour_of(const job::LogRecord& record);

}  // namespace muster::cli
