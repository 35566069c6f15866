// A program in a task and the WebSocket of whoever asked for it, as one: what each says goes to the
// other, at the pace of the slower one (api/terminal.h).
//
// The program is started before the WebSocket is opened, so that what is wrong is an answer like
// any other; its output is held back until then. It ends with the WebSocket, and the other way
// round.
//
// On the EventLoop's thread.
#pragma once

#include <functional>
#include <memory>

#include "control/controller.h"
#include "http/message.h"
#include "server/answers.h"
#include "server/call.h"
#include "server/sight.h"

namespace muster::server {

class ProgramBridge {
 public:
  /// `still_valid`: whether whoever asked still may; empty: always.
  explicit ProgramBridge(std::function<bool()> still_valid);

  /// What the program is to be started with.
  engine::ExecHandlers handlers();

  /// The answer to the request: 101, and from then on the WebSocket keeps the program.
  http::Response answer(std::unique_ptr<engine::Exec> program);

 private:
  class Ends;
  std::shared_ptr<Ends> ends_;
};

/// Starts something in a task of the job: the parts that all requests for a WebSocket share. The
/// caller must be a member of the job's project, and ask for an upgrade.
using StartProgram = std::function<base::Result<std::unique_ptr<engine::Exec>>(
    const job::Job& job, engine::ExecHandlers handlers)>;
Answer bridged(control::Controller& controller, const Call& call, const StartProgram& start);

}  // namespace muster::server
