// A program in a task and the WebSocket of whoever asked for it, as one: what each says goes to the
// other, at the pace of the slower one (api/terminal.h).
//
// The WebSocket is opened when the program is known to run, so that what is wrong is an answer like
// any other; its output is held back until then. It ends with the WebSocket, and the other way
// round.
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

/// Bridges, and those that wait for their program to begin: dropped with this, unanswered.
class ProgramBridges {
 public:
  ProgramBridges();
  ~ProgramBridges();

  /// Starts something in a task of the job: the parts that all requests for a WebSocket share. The
  /// caller must be a member of the job's project, and ask for an upgrade. Answers now or later.
  using StartIn = std::function<base::Result<std::unique_ptr<engine::Exec>>(
      const job::Job& job, engine::ExecHandlers handlers)>;
  void answer(control::Controller& controller, const Call& call, const StartIn& start,
              http::Respond respond);

  /// The same without a look at who asks. `still_valid`: whether whoever asked still may; empty:
  /// always. The answer is 101, and from then on the WebSocket keeps the program.
  using Start =
      std::function<base::Result<std::unique_ptr<engine::Exec>>(engine::ExecHandlers handlers)>;
  void open(std::function<bool()> still_valid, const Start& start, http::Respond respond);

 private:
  class Ends;
  std::set<std::shared_ptr<Ends>> waiting_;
};

}  // namespace muster::server
