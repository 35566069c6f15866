#include "control/log_lines.h"

#include <utility>

namespace muster::control {

namespace {

RunSplitter::Emit line_by_line(const LineSplitter::Emit& emit) {
  return [&emit](const RunSplitter::Run& run) {
    job::LogRecord record = job::record_of(*run.source);
    record.time = run.time;
    job::for_each_line(run.bytes, record, [&](const job::LogRecord& line) {
      emit(line);
      return true;
    });
  };
}

}  // namespace

LineSplitter::LineSplitter(std::string task, std::string host, int attempt)
    : runs_({.task = std::move(task), .attempt = attempt, .host = std::move(host), .rank = {}}) {}

void LineSplitter::add(const engine::LogFrame& frame, const Emit& emit) {
  runs_.add(frame, line_by_line(emit));
}

void LineSplitter::flush(bool last, const Emit& emit) {
  runs_.flush(last, line_by_line(emit));
}

}  // namespace muster::control
