// Connects a program in a task with the WebSocket of its caller: each end's data goes to the other
// at the pace of the slower end (api/terminal.h).
//
// The WebSocket is opened once the program runs, so that an error before is an ordinary answer.
// Output is held back until then. The program ends with the WebSocket, and the WebSocket with the
// program.
//
// On the EventLoop's thread.
#pragma once

#include <functional>
#include <memory>
#include <set>

#include "control/controller.h"
#include "http/message.h"
#include "server/router.h"
#include "server/sight.h"

namespace muster::server {

/// All bridges, including those whose program has not begun. Destroying this drops them unanswered.
class ProgramBridges {
 public:
  ProgramBridges();
  ~ProgramBridges();

  /// Starts a program in a task of the job. The caller must be a member of the job's project, and
  /// request an upgrade. Answers now or later.
  using StartIn = std::function<base::Result<std::unique_ptr<engine::Exec>>(
      const job::Job& job, engine::ExecHandlers handlers)>;
  void answer(control::Controller& controller, const ApiCall& call, const StartIn& start,
              http::Respond respond);

  /// The same without a check of the caller. `still_valid`: whether the caller still has its
  /// rights; empty: always. The answer is 101, and from then on the WebSocket keeps the program.
  using Start =
      std::function<base::Result<std::unique_ptr<engine::Exec>>(engine::ExecHandlers handlers)>;
  void open(std::function<bool()> still_valid, const Start& start, http::Respond respond);

 private:
  class Ends;
  std::set<std::shared_ptr<Ends>> waiting_;
};

}  // namespace muster::server
