// For tests: an engine whose tasks print the frames that a test gives them.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "control/test_parts.h"
#include "engine/log_frame.h"
#include "job/log_record.h"
#include "logs/test_frames.h"

namespace muster::control {

using logs::frame_of;
using logs::kFirstFrame;

/// Logs that grow frame by frame, as shims write them.
class GrowingLogs : public LastingEngine {
 public:
  using LastingEngine::LastingEngine;

  void append(const engine::GangId& gang, const std::string& task, engine::LogFrame frame) {
    Log& log = logs_[{gang, task}];
    log.frames.push_back(std::move(frame));
    const auto watchers = log.watchers;
    for (const auto& watcher : watchers) {
      if (const auto grown = watcher.lock()) (*grown)();
    }
  }

  base::Result<std::unique_ptr<engine::LogCursor>> open_log(const engine::GangId& gang,
                                                            const std::string& task) override {
    const auto found = logs_.find({gang, task});
    if (found == logs_.end()) return base::Error{.code = base::ErrorCode::kNotFound, .what = task};
    return std::unique_ptr<engine::LogCursor>(std::make_unique<Cursor>(found->second));
  }

  std::shared_ptr<void> watch_log(const engine::GangId& gang, const std::string& task,
                                  std::function<void()> grown) override {
    auto watcher = std::make_shared<std::function<void()>>(std::move(grown));
    logs_[{gang, task}].watchers.push_back(watcher);
    return watcher;
  }

 private:
  struct Log {
    std::vector<engine::LogFrame> frames;
    std::vector<std::weak_ptr<std::function<void()>>> watchers;
  };

  class Cursor : public engine::LogCursor {
   public:
    explicit Cursor(const Log& log) : log_(log) {}
    base::Result<bool> next(engine::LogFrame& frame) override {
      if (next_ == log_.frames.size()) return false;
      frame = log_.frames[next_++];
      return true;
    }
    base::Result<void> seek_near_end(size_t) override { return {}; }
    uint64_t size() const override { return log_.frames.size(); }

   private:
    const Log& log_;
    size_t next_ = 0;
  };

  std::map<std::pair<engine::GangId, std::string>, Log> logs_;
};

}  // namespace muster::control
