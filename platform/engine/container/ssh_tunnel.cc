#include "engine/container/ssh_tunnel.h"

#include <algorithm>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "base/text.h"
#include "engine/container/ssh_process.h"

namespace muster::engine {

namespace {

using base::Error;
using base::ErrorCode;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

/// A tunnel that has held for so long was a good one: the next begins without a pause.
constexpr std::chrono::seconds kGood{10};

// For sh, within single quotes. Prints the first of the usual sockets that this user can use.
constexpr const char* kFindSocket =
    "exec sh -c 'd=${XDG_RUNTIME_DIR:-/run/user/$(id -u)}; "
    "for s in $d/podman/podman.sock $d/docker.sock /run/podman/podman.sock /run/docker.sock "
    "/var/run/docker.sock; do "
    "if [ -S $s ] && [ -w $s ]; then echo $s; exit 0; fi; done; exit 44'";
constexpr int kNoSocket = 44;

/// Who is meant, behind the options.
std::vector<std::string> destination(const SshEndpoint& endpoint) {
  std::vector<std::string> words;
  if (endpoint.port != 0) words.insert(words.end(), {"-p", std::to_string(endpoint.port)});
  if (!endpoint.user.empty()) words.insert(words.end(), {"-l", endpoint.user});
  words.insert(words.end(), {"--", endpoint.host});
  return words;
}

std::vector<std::string> forwarding(const SshEndpoint& endpoint, const std::string& near_end) {
  std::vector<std::string> words{"-N"};
  // The local command is run when the near end listens: nothing else tells of that.
  for (const char* option :
       {"ExitOnForwardFailure=yes", "StreamLocalBindUnlink=yes", "StreamLocalBindMask=0177",
        "PermitLocalCommand=yes", "LocalCommand=echo open"}) {
    words.insert(words.end(), {"-o", option});
  }
  words.insert(words.end(), {"-L", near_end + ":" + endpoint.socket.string()});
  const std::vector<std::string> whom = destination(endpoint);
  words.insert(words.end(), whom.begin(), whom.end());
  return words;
}

std::vector<base::Fault> last_lines_of(const std::string& text) {
  constexpr size_t kMost = 5;
  std::vector<std::string> lines = base::split(text, '\n');
  std::erase_if(lines, [](std::string& line) {
    while (!line.empty() && (line.back() == '\r' || line.back() == ' ')) line.pop_back();
    return line.empty();
  });
  if (lines.size() > kMost) lines.erase(lines.begin(), lines.end() - kMost);
  std::vector<base::Fault> faults;
  for (std::string& line : lines) faults.push_back({.field = "", .what = std::move(line)});
  return faults;
}

}  // namespace

struct SshTunnel::Impl {
  base::EventLoop& loop;
  SshEndpoint endpoint;
  std::filesystem::path socket;
  std::function<void(Result<void>)> on_state;
  TunnelPatience patience;

  std::unique_ptr<SshProcess> ssh;
  base::EventLoop::Interest timer;  ///< until it is open, or until the next try
  milliseconds pause = patience.first_pause;
  std::optional<steady_clock::time_point> open_since;

  void begin() {
    open_since.reset();
    timer = loop.after(patience.opening, [this] { late(); });
    auto started = endpoint.socket.empty() ? ask_for_socket() : forward();
    if (!started) return failed(std::move(started).error());
  }

  Result<void> ask_for_socket() {
    std::vector<std::string> words = destination(endpoint);
    words.emplace_back(kFindSocket);
    MUSTER_TRY(ssh, SshProcess::start(loop, words, {.on_end = [this](SshEnd end) { asked(end); }}));
    return {};
  }

  void asked(const SshEnd& end) {
    ssh.reset();
    // The last line: what comes before is the greeting of whatever shell is there.
    const std::vector<std::string> lines = base::split(end.output, '\n');
    const std::string found = lines.empty() ? "" : lines.back();
    if (end.exit_code == kNoSocket) return failed(no_engine_there());
    if (end.exit_code != 0 || !found.starts_with('/')) return failed(broken(end));
    endpoint.socket = found;
    begin();
  }

  Result<void> forward() {
    MUSTER_TRY(ssh, SshProcess::start(loop, forwarding(endpoint, socket.string()),
                                      {.on_output = [this] { opened(); },
                                       .on_end = [this](SshEnd end) { failed(broken(end)); }}));
    return {};
  }

  void opened() {
    if (open_since) return;
    timer.reset();
    open_since = steady_clock::now();
    on_state({});
  }

  void late() {
    failed({.code = ErrorCode::kTimeout,
            .what = "ssh to " + endpoint.host + " was not there within " +
                    std::to_string(patience.opening.count() / 1000) + " s",
            .advice = try_by_hand()});
  }

  void failed(Error error) {
    ssh.reset();
    if (open_since && steady_clock::now() - *open_since > kGood) pause = patience.first_pause;
    timer = loop.after(pause, [this] { begin(); });
    pause = std::min(2 * pause, patience.longest_pause);
    on_state(std::move(error));
  }

  std::string try_by_hand() const {
    std::vector<std::string> words{"ssh", "-o", "BatchMode=yes"};
    for (std::string& word : destination(endpoint)) words.push_back(std::move(word));
    words.emplace_back("true");
    return "try it by hand, as the user of the server: " + base::shell_joined(words);
  }

  Error broken(const SshEnd& end) const {
    return {.code = ErrorCode::kUnavailable,
            .what = (open_since ? "the ssh connection to " : "no ssh connection to ") +
                    endpoint.host + (open_since ? " has ended" : ""),
            .advice = try_by_hand(),
            .faults = last_lines_of(end.errors)};
  }

  Error no_engine_there() const {
    return {.code = ErrorCode::kNotFound,
            .what = "no Docker or Podman was found on " + endpoint.host +
                    ": none of the usual sockets is one that its user can use",
            .advice =
                "start one there: systemctl --user start podman.socket (and loginctl "
                "enable-linger, so that it stays), or Docker; or name its socket: "
                "ssh://HOST/PATH/TO/SOCKET"};
  }
};

SshTunnel::SshTunnel(base::EventLoop& loop, SshEndpoint endpoint, std::filesystem::path socket,
                     std::function<void(Result<void>)> on_state, TunnelPatience patience)
    : impl_(new Impl{.loop = loop,
                     .endpoint = std::move(endpoint),
                     .socket = std::move(socket),
                     .on_state = std::move(on_state),
                     .patience = patience,
                     .ssh = {},
                     .timer = {},
                     .open_since = {}}) {
  // Not at once: whoever makes a tunnel has it before they hear of it.
  impl_->timer = loop.after(milliseconds(0), [impl = impl_.get()] { impl->begin(); });
}

SshTunnel::~SshTunnel() {
  impl_->ssh.reset();
  std::error_code ignored;
  std::filesystem::remove(impl_->socket, ignored);
}

}  // namespace muster::engine
