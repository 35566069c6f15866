// Turns a task's log frames into records, one for each line: log_runs.h for those who read little.
//
// Pure. One LineSplitter a task; frames in order.
#pragma once

#include <functional>
#include <string>

#include "control/log_runs.h"
#include "engine/log_frame.h"
#include "job/log_record.h"

namespace muster::control {

class LineSplitter {
 public:
  using Emit = std::function<void(job::LogRecord)>;

  LineSplitter(std::string task, std::string host, int attempt = 0);

  void add(const engine::LogFrame& frame, const Emit& emit);

  /// Hands over what stands without a newline yet: as whole lines when `last`, else as the
  /// beginnings of lines that go on.
  void flush(bool last, const Emit& emit);

 private:
  RunSplitter runs_;
};

}  // namespace muster::control
