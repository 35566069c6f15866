#include "engine/kubernetes/streams.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/bytes.h"
#include "base/json_text.h"
#include "base/text.h"
#include "engine/kubernetes/api_paths.h"
#include "engine/kubernetes/api_session.h"
#include "http/websocket.h"

namespace muster::engine::kubernetes {

using base::Error;
using base::ErrorCode;
using base::Result;
using http::WebSocket;

namespace {

// Channels of exec and attach; the first byte of each message names one.
constexpr char kInput = 0;
constexpr char kOutput = 1;
constexpr char kErrors = 2;
constexpr char kStatus = 3;
constexpr char kResize = 4;
/// v5: closes the channel that the next byte names.
constexpr char kClose = '\xFF';

// Channels of a forwarded port.
constexpr char kPortData = 0;
constexpr char kPortErrors = 1;
constexpr size_t kPortNumberBytes = 2;

/// Of a message; larger writes are split. Kubelets read 32 KiB at a time.
constexpr size_t kPiece = 32 << 10;
constexpr size_t kLongestStreamError = 4 << 10;

/// Sends bytes on a channel.
void send_on(WebSocket& socket, char channel, std::string_view bytes) {
  while (!bytes.empty()) {
    const std::string_view piece = bytes.substr(0, kPiece);
    bytes.remove_prefix(piece.size());
    std::string message;
    message.reserve(piece.size() + 1);
    message += channel;
    message += piece;
    socket.send(WebSocket::Kind::kBinary, std::move(message));
  }
}

std::string status_member(const Json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

/// The Status object by which the kubelet reports how a command ended.
CommandEnd read_end(const std::string& text) {
  const Json status = base::parse_json(text);
  if (!status.is_object()) {
    return {.error = base::shortened(base::as_utf8(base::trimmed(text)), kLongestStreamError)};
  }
  if (status_member(status, "status") == "Success") return {.exit_code = 0};
  const ApiRefusal refusal = read_refusal(status, 0);
  for (const StatusCause& cause : refusal.causes) {
    if (cause.reason_code != "ExitCode") continue;
    int code = 0;
    const auto& digits = cause.message;
    const auto end = std::from_chars(digits.data(), digits.data() + digits.size(), code).ptr;
    if (end == digits.data() + digits.size() && !digits.empty()) return {.exit_code = code};
  }
  return {.error = refusal.message.empty() ? refusal.reason_code : refusal.message};
}

// --- exec and attach

/// The socket of a command. Held by the stream that the caller owns.
class CommandSocket : public std::enable_shared_from_this<CommandSocket> {
 public:
  CommandSocket(std::shared_ptr<WebSocket> socket, std::string protocol, std::string name,
                PodStream::Handlers handlers)
      : socket_(std::move(socket)),
        protocol_(std::move(protocol)),
        name_(std::move(name)),
        handlers_(std::move(handlers)) {}

  void begin() {
    if (socket_ == nullptr) return;
    socket_->set_handlers({.on_message =
                               [this](WebSocket::Kind, const std::string& message) {
                                 const auto self = shared_from_this();
                                 take(message);
                               },
                           .on_close =
                               [this] {
                                 const auto self = shared_from_this();
                                 ended();
                               },
                           .on_drain =
                               [this] {
                                 const auto self = shared_from_this();
                                 const auto on_drain = handlers_.on_drain;  // may drop this
                                 if (on_drain) on_drain();
                               }});
  }

  /// Calls nothing any more.
  void drop() {
    handlers_ = {};
    socket_.reset();
  }

  WebSocket* socket() { return socket_.get(); }
  const std::string& protocol() const { return protocol_; }
  bool can_close() const { return protocol_.starts_with("v5."); }

 private:
  void take(const std::string& message) {
    if (message.size() < 2) return;
    const std::string_view bytes = std::string_view(message).substr(1);
    const char channel = message.front();
    if (channel == kStatus) {
      if (status_.size() < kLongestStatus) status_ += bytes;
    } else if ((channel == kOutput || channel == kErrors) && handlers_.on_output) {
      const auto on_output = handlers_.on_output;  // may drop the stream
      on_output(bytes, channel == kErrors);
    }
  }

  void ended() {
    const auto on_end = std::exchange(handlers_, {}).on_end;
    if (!on_end) return;
    if (!status_.empty()) return on_end(read_end(status_));
    on_end(Error{.code = ErrorCode::kUnavailable,
                 .what = "the connection to " + name_ + " broke before its command ended"});
  }

  static constexpr size_t kLongestStatus = 64 << 10;
  std::shared_ptr<WebSocket> socket_;
  const std::string protocol_;
  const std::string name_;
  PodStream::Handlers handlers_;
  std::string status_;
};

class OpenStream : public PodStream {
 public:
  explicit OpenStream(std::shared_ptr<CommandSocket> command) : command_(std::move(command)) {}
  ~OpenStream() override { command_->drop(); }
  OpenStream(const OpenStream&) = delete;
  OpenStream& operator=(const OpenStream&) = delete;

  void write(std::string_view bytes) override {
    if (!is_closed_) send_on(*command_->socket(), kInput, bytes);
  }
  size_t waiting() const override { return command_->socket()->waiting(); }
  bool close_input() override {
    if (!command_->can_close()) return false;
    if (!std::exchange(is_closed_, true)) {
      command_->socket()->send(WebSocket::Kind::kBinary, {kClose, kInput});
    }
    return true;
  }
  void resize(int columns, int rows) override {
    send_on(*command_->socket(), kResize,
            base::json_text(Json{{"Width", columns}, {"Height", rows}}));
  }
  void pause(bool paused) override { command_->socket()->pause(paused); }
  const std::string& protocol() const override { return command_->protocol(); }

 private:
  std::shared_ptr<CommandSocket> command_;
  bool is_closed_ = false;
};

// --- a forwarded port

class PortSocket : public std::enable_shared_from_this<PortSocket> {
 public:
  explicit PortSocket(std::shared_ptr<WebSocket> socket) : socket_(std::move(socket)) {}

  void listen(node::PeerStream::Handlers handlers) {
    handlers_ = std::move(handlers);
    if (std::exchange(has_begun_, true)) return;
    socket_->set_handlers({.on_message =
                               [this](WebSocket::Kind, const std::string& message) {
                                 const auto self = shared_from_this();
                                 take(message);
                               },
                           .on_close =
                               [this] {
                                 const auto self = shared_from_this();
                                 const auto on_end = std::exchange(handlers_, {}).on_end;
                                 if (on_end) on_end(why());
                               },
                           .on_drain =
                               [this] {
                                 const auto self = shared_from_this();
                                 const auto on_drain = handlers_.on_drain;  // may drop this
                                 if (on_drain) on_drain();
                               }});
  }

  void drop() {
    handlers_ = {};
    socket_.reset();
  }

  WebSocket& socket() { return *socket_; }

 private:
  /// Both channels begin with the number of the port.
  void take(std::string_view message) {
    if (message.empty()) return;
    const char channel = message.front();
    message.remove_prefix(1);
    if (channel != kPortData && channel != kPortErrors) return;
    size_t& skipped = skipped_[channel == kPortData ? 0 : 1];
    const size_t count = std::min(kPortNumberBytes - skipped, message.size());
    skipped += count;
    message.remove_prefix(count);
    if (message.empty()) return;
    if (channel == kPortErrors) {
      if (errors_.size() < kLongestStreamError) errors_ += message;
    } else if (const auto on_bytes = handlers_.on_bytes) {
      on_bytes(message);
    }
  }

  std::string why() const {
    if (errors_.empty()) return "";
    return "closed the connection: " +
           base::shortened(base::as_utf8(base::trimmed(errors_)), kLongestStreamError);
  }

  std::shared_ptr<WebSocket> socket_;
  node::PeerStream::Handlers handlers_;
  bool has_begun_ = false;
  std::array<size_t, 2> skipped_{};
  std::string errors_;
};

class PortConnection : public node::PeerStream {
 public:
  explicit PortConnection(std::shared_ptr<WebSocket> socket)
      : port_(std::make_shared<PortSocket>(std::move(socket))) {}
  ~PortConnection() override { port_->drop(); }
  PortConnection(const PortConnection&) = delete;
  PortConnection& operator=(const PortConnection&) = delete;

  void listen(Handlers handlers) override { port_->listen(std::move(handlers)); }
  void write(std::string_view bytes) override { send_on(port_->socket(), kPortData, bytes); }
  size_t waiting() const override { return port_->socket().waiting(); }
  void pause(bool paused) override { port_->socket().pause(paused); }

 private:
  std::shared_ptr<PortSocket> port_;
};

// --- a program as a byte stream

/// The data between a program's stream and its connection.
struct ProgramEnds {
  node::PeerStream::Handlers handlers;
  std::string errors;  ///< the end of what the program wrote to its standard error

  void take(std::string_view bytes, bool is_error) {
    if (!is_error) {
      if (const auto on_bytes = handlers.on_bytes) on_bytes(bytes);
      return;
    }
    errors += bytes;
    if (errors.size() > kLongestStreamError) {
      errors.erase(0, errors.size() - kLongestStreamError);
    }
  }

  void end(const Result<CommandEnd>& end) {
    const auto on_end = std::exchange(handlers, {}).on_end;
    if (on_end) on_end(why(end));
  }

  std::string why(const Result<CommandEnd>& end) const {
    if (end && end->exit_code == 0) return "";
    std::string text = "ended the program";
    if (!end) {
      text = "is not connected any more: " + end.error().what;
    } else if (end->exit_code) {
      text += " with exit code " + std::to_string(*end->exit_code);
    } else {
      text += ": " + end->error;
    }
    const std::string words = base::as_utf8(base::trimmed(errors));
    return words.empty() ? text : text + ": " + words;
  }
};

class ProgramConnection : public node::PeerStream {
 public:
  ProgramConnection(std::unique_ptr<PodStream> stream, std::shared_ptr<ProgramEnds> ends)
      : stream_(std::move(stream)), ends_(std::move(ends)) {
    stream_->pause(true);
  }
  ~ProgramConnection() override { ends_->handlers = {}; }
  ProgramConnection(const ProgramConnection&) = delete;
  ProgramConnection& operator=(const ProgramConnection&) = delete;

  void listen(Handlers handlers) override {
    ends_->handlers = std::move(handlers);
    if (!std::exchange(has_begun_, true)) stream_->pause(false);
  }
  void write(std::string_view bytes) override { stream_->write(bytes); }
  size_t waiting() const override { return stream_->waiting(); }
  void pause(bool paused) override { stream_->pause(paused); }

 private:
  std::unique_ptr<PodStream> stream_;
  std::shared_ptr<ProgramEnds> ends_;
  bool has_begun_ = false;
};

}  // namespace

Call open_port(ApiClient& client, const std::string& space, const std::string& pod, uint16_t port,
               ApiClient::Then<std::unique_ptr<node::PeerStream>> then) {
  const std::string name = described({.resource = kPods, .space = space, .name = pod});
  return client.session()->open_websocket(
      {.verb = "get",
       .resource = "pods/portforward",
       .doing = "cannot connect to port " + std::to_string(port) + " of " + name,
       .target = target_of(kPods, space, pod, {{"ports", std::to_string(port)}}, "portforward")},
      {"v4.channel.k8s.io"}, [then = std::move(then)](Result<http::WebSocketAnswer> answer) {
        if (!answer) return then(std::move(answer).error());
        then(std::unique_ptr<node::PeerStream>(
            std::make_unique<PortConnection>(std::move(answer->socket))));
      });
}

Call open_stream(ApiClient& client, const PodCommand& command, PodStream::Handlers handlers,
                 ApiClient::Then<std::unique_ptr<PodStream>> then, const StreamOptions& options) {
  const std::string name =
      described({.resource = kPods, .space = command.space, .name = command.pod});
  const bool is_attach = command.argv.empty();
  http::Query query;
  for (const std::string& argument : command.argv) query.add("command", argument);
  if (!command.container.empty()) query["container"] = command.container;
  if (command.has_input) query["stdin"] = "true";
  if (command.has_output) query["stdout"] = "true";
  if (command.has_errors && !command.has_terminal) query["stderr"] = "true";
  if (command.has_terminal) query["tty"] = "true";
  const char* subresource = is_attach ? "attach" : "exec";
  return client.session()->open_websocket(
      {.verb = "get",
       .resource = is_attach ? "pods/attach" : "pods/exec",
       .doing = (is_attach ? "cannot attach to " : "cannot run a command in ") + name,
       .target = target_of(kPods, command.space, command.pod, query, subresource),
       .is_safe = false},
      options.protocols,
      [name, handlers = std::move(handlers),
       then = std::move(then)](Result<http::WebSocketAnswer> answer) mutable {
        if (!answer) return then(std::move(answer).error());
        const auto socket = std::make_shared<CommandSocket>(
            std::move(answer->socket), answer->protocol, name, std::move(handlers));
        then(std::unique_ptr<PodStream>(std::make_unique<OpenStream>(socket)));
        socket->begin();
      });
}

Call open_program(ApiClient& client, const std::string& space, const std::string& pod,
                  const std::string& container, std::vector<std::string> argv,
                  ApiClient::Then<std::unique_ptr<node::PeerStream>> then) {
  const auto ends = std::make_shared<ProgramEnds>();
  return open_stream(
      client,
      {.space = space,
       .pod = pod,
       .container = container,
       .argv = std::move(argv),
       .has_input = true},
      {.on_output = [ends](std::string_view bytes, bool is_error) { ends->take(bytes, is_error); },
       .on_end = [ends](const Result<CommandEnd>& end) { ends->end(end); },
       .on_drain =
           [ends] {
             if (const auto on_drain = ends->handlers.on_drain) on_drain();
           }},
      [ends, then = std::move(then)](Result<std::unique_ptr<PodStream>> stream) {
        if (!stream) return then(std::move(stream).error());
        then(std::unique_ptr<node::PeerStream>(
            std::make_unique<ProgramConnection>(*std::move(stream), ends)));
      });
}

}  // namespace muster::engine::kubernetes
