#include "server/program_bridge.h"

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "api/terminal.h"
#include "http/websocket.h"
#include "server/router.h"

namespace muster::server {

using base::Error;
using base::ErrorCode;
using http::WebSocket;

namespace {

constexpr int kSwitching = 101;

// Codes of RFC 6455, 7.4.1.
constexpr int kDone = 1000;
constexpr int kInvalidPayload = 1007;
constexpr int kPolicyViolation = 1008;

/// The job, if the caller may run programs in it.
base::Result<const job::Job*> job_to_enter(control::Controller& controller, const ApiCall& call) {
  const Sight sight(controller, call.who);
  MUSTER_TRY(
      const job::Job* const job,
      sight.job(call.path.at("name"), parameter(call.request, "project"), access::Role::kMember));
  MUSTER_CHECK(sight.may_run_in(job->spec.sandbox));
  if (http::requests_websocket(call.request)) return job;
  return Error{.code = ErrorCode::kInvalid,
               .what = "this request requires a WebSocket",
               .advice = "request an upgrade to a WebSocket, version 13 (RFC 6455)"};
}

/// Whether the caller's identity and its role in the job's project are unchanged.
std::function<bool()> may_stay(const control::Controller& controller, const ApiCall& call,
                               const std::string& id) {
  return [&controller, still_valid = call.still_valid, who = call.who, id] {
    if (still_valid && !still_valid()) return false;
    const job::Job* const job = controller.jobs().with_id(id);
    return job == nullptr || Sight(controller, who).job(id, "", access::Role::kMember);
  };
}

}  // namespace

class ProgramBridges::Ends : public std::enable_shared_from_this<Ends> {
 public:
  explicit Ends(std::function<bool()> still_valid) : still_valid_(std::move(still_valid)) {}

  /// The handlers of the program.
  engine::ExecHandlers handlers() {
    const std::weak_ptr<Ends> weak = weak_from_this();
    return {.on_output =
                [weak](std::string_view bytes, bool is_error) {
                  if (const auto self = weak.lock()) self->on_output(bytes, is_error);
                },
            .on_exit =
                [weak](const job::ExitStatus& status) {
                  if (const auto self = weak.lock()) self->on_exit(status);
                },
            .on_drain =
                [weak] {
                  const auto self = weak.lock();
                  if (self && self->socket_ != nullptr) self->socket_->pause(false);
                },
            .on_output_end =
                [weak](bool is_error) {
                  if (const auto self = weak.lock()) self->on_output({}, is_error);
                }};
  }

  void take(std::unique_ptr<engine::Exec> exec) {
    exec_ = std::move(exec);
    exec_->pause(true);
  }

  void when_begun(engine::Exec::Begun on_begun) { exec_->when_begun(std::move(on_begun)); }

  /// From here on the WebSocket keeps this alive until it is closed.
  void open(std::shared_ptr<WebSocket> socket) {
    socket_ = std::move(socket);
    socket_->set_handlers(
        {.on_message = [self = shared_from_this()](
                           WebSocket::Kind kind,
                           const std::string& message) { self->on_message(kind, message); },
         .on_close = [self = shared_from_this()] { self->end(); },
         .on_drain =
             [self = shared_from_this()] {
               if (self->exec_ != nullptr) self->exec_->pause(false);
             }});
    if (exit_) return send_exit();
    exec_->pause(false);
  }

 private:
  void on_output(std::string_view bytes, bool is_error) {
    if (!may_go_on()) return;
    std::string message(1, is_error ? api::kErrorByte : api::kOutputByte);
    socket_->send(WebSocket::Kind::kBinary, message.append(bytes));
    if (socket_->waiting() > WebSocket::kHigh) exec_->pause(true);
  }

  void on_exit(const job::ExitStatus& status) {
    exec_.reset();
    exit_ = status;
    if (socket_ != nullptr) send_exit();
  }

  void send_exit() {
    socket_->send(WebSocket::Kind::kText, api::terminal_exit_to_json(*exit_));
    socket_->close(kDone, "");
  }

  void on_message(WebSocket::Kind kind, const std::string& message) {
    if (exec_ == nullptr || !may_go_on()) return;
    if (kind == WebSocket::Kind::kText) {
      heed(message);
    } else {
      exec_->write(message);
    }
    if (exec_ != nullptr && exec_->waiting() > engine::Exec::kHigh) socket_->pause(true);
  }

  void heed(const std::string& message) {
    const auto control = api::terminal_control_from_json(message);
    if (!control) return hang_up(kInvalidPayload, control.error().what);
    if (const auto* size = std::get_if<api::Resize>(&*control)) {
      exec_->resize(size->rows, size->columns);
    } else {
      exec_->close_input();
    }
  }

  /// A caller that is no longer allowed gets no further byte.
  bool may_go_on() {
    if (socket_ == nullptr) return false;
    if (!still_valid_ || still_valid_()) return true;
    hang_up(kPolicyViolation, "your token is no longer valid, or your rights have changed");
    return false;
  }

  void hang_up(int code, std::string_view why) {
    exec_.reset();
    if (socket_ != nullptr) socket_->close(code, why);
  }

  void end() {
    exec_.reset();
    socket_.reset();
  }

  std::function<bool()> still_valid_;
  std::unique_ptr<engine::Exec> exec_;
  std::shared_ptr<WebSocket> socket_;
  std::optional<job::ExitStatus> exit_;
};

ProgramBridges::ProgramBridges() = default;
ProgramBridges::~ProgramBridges() = default;

void ProgramBridges::answer(control::Controller& controller, const ApiCall& call,
                            const StartIn& start, http::Respond respond) {
  const auto job = job_to_enter(controller, call);
  if (!job) return respond(problem(job.error()));
  const auto start_there = [&](engine::ExecHandlers handlers) {
    return start(**job, std::move(handlers));
  };
  open(may_stay(controller, call, (*job)->id), start_there, std::move(respond));
}

void ProgramBridges::open(std::function<bool()> still_valid, const Start& start,
                          http::Respond respond) {
  const auto ends = std::make_shared<Ends>(std::move(still_valid));
  auto program = start(ends->handlers());
  if (!program) return respond(problem(program.error()));
  ends->take(*std::move(program));
  waiting_.insert(ends);
  ends->when_begun([this, weak = std::weak_ptr(ends),
                    respond = std::move(respond)](const base::Result<void>& begun) {
    const auto its_ends = weak.lock();
    waiting_.erase(its_ends);
    if (!begun) return respond(problem(begun.error()));
    http::Response response{.status = kSwitching};
    response.websocket = [its_ends](std::shared_ptr<WebSocket> socket) {
      its_ends->open(std::move(socket));
    };
    respond(std::move(response));
  });
}

}  // namespace muster::server
