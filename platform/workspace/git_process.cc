#include "workspace/git_process.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>

#include "base/files.h"
#include "base/subprocess.h"

namespace muster::workspace {

using base::Error;
using base::ErrorCode;
using base::UniqueFd;

namespace {

constexpr int kLoginDescriptor = 3;

struct Pipe {
  UniqueFd read_end;
  UniqueFd write_end;
};

Result<Pipe> make_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return base::system_error("cannot make a pipe", errno);
  return Pipe{UniqueFd(ends[0]), UniqueFd(ends[1])};
}

/// What the helper answers, whole and readable once: git asks once, for a second time means that
/// the first answer was wrong.
Result<UniqueFd> login_pipe(const GitLogin& login) {
  MUSTER_TRY(Pipe pipe, make_pipe());
  MUSTER_CHECK(base::write_all(
      pipe.write_end.get(), "username=" + login.username + "\npassword=" + login.password + "\n"));
  return std::move(pipe.read_end);
}

std::string percent_encoded(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  constexpr std::string_view kPlain = "-._~";
  std::string out;
  for (const char letter : text) {
    const auto code = static_cast<unsigned char>(letter);
    if (std::isalnum(code) != 0 || kPlain.find(letter) != std::string_view::npos) {
      out += letter;
    } else {
      out.append(1, '%').append(1, kDigits[code >> 4]).append(1, kDigits[code & 15]);
    }
  }
  return out;
}

void replace_all(std::string& text, std::string_view what, std::string_view with) {
  for (size_t at = text.find(what); at != std::string::npos;
       at = text.find(what, at + with.size())) {
    text.replace(at, what.size(), with);
  }
}

/// Cuts what git says into lines; progress is overwritten in place, so it ends in '\r'.
class Lines {
 public:
  Lines(const std::string& secret, const OnGitLine& on_line) : secret_(secret), on_line_(on_line) {}

  void take(std::string_view text) {
    for (const char letter : text) {
      if (letter == '\n' || letter == '\r') {
        finish();
      } else if (current_.size() < kLongest) {
        current_ += letter;
      }
    }
  }
  void finish() {
    if (current_.empty()) return;
    const std::string line = scrubbed(std::exchange(current_, {}), secret_);
    if (on_line_) on_line_(line);
    const bool is_progress = line.find("% (") != std::string::npos;
    if (!is_progress) last_.push_back(line);
    if (last_.size() > kMost) last_.erase(last_.begin());
  }
  std::vector<std::string> last() && { return std::move(last_); }

 private:
  static constexpr size_t kMost = 6;
  static constexpr size_t kLongest = 1000;

  const std::string& secret_;
  const OnGitLine& on_line_;
  std::string current_;
  std::vector<std::string> last_;
};

/// Reads what is there; false once there is no more.
bool drain(const UniqueFd& fd, const std::function<void(std::string_view)>& take) {
  std::array<char, 16 << 10> buffer{};
  while (true) {
    const ssize_t count = ::read(fd.get(), buffer.data(), buffer.size());
    if (count > 0) take({buffer.data(), static_cast<size_t>(count)});
    if (count == 0) return false;
    if (count < 0 && errno != EINTR) return errno == EAGAIN;
  }
}

/// Until git has ended. Not until its pipes are closed: what it leaves running, such as the master
/// of an ssh connection, may hold them for hours.
Result<void> listen(const base::Child& child, UniqueFd out, UniqueFd err, std::string& said_out,
                    Lines& lines) {
  for (const UniqueFd* fd : {&out, &err}) ::fcntl(fd->get(), F_SETFL, O_NONBLOCK);
  bool ended = false;
  while (!ended) {
    std::array<pollfd, 3> waited{pollfd{.fd = child.pidfd.get(), .events = POLLIN, .revents = 0},
                                 pollfd{.fd = out.get(), .events = POLLIN, .revents = 0},
                                 pollfd{.fd = err.get(), .events = POLLIN, .revents = 0}};
    if (::poll(waited.data(), waited.size(), -1) < 0 && errno != EINTR) {
      return base::system_error("cannot wait for git", errno);
    }
    ended = waited[0].revents != 0;  // then once more, for its last words
    if (out && !drain(out, [&](std::string_view text) { said_out += text; })) out.reset();
    if (err && !drain(err, [&](std::string_view text) { lines.take(text); })) err.reset();
  }
  lines.finish();
  return {};
}

std::vector<std::string> settings_for(const std::string& url, const GitLogin& login) {
  std::vector<std::string> settings{
      "remote.origin.url=" + url,
      "core.hooksPath=/dev/null",   // of a user's template: not for a workspace
      "gc.auto=0",                  // would go on in the background
      "maintenance.auto=false",     //
      "advice.detachedHead=false",  //
      "init.defaultBranch=main",    // else git explains at length that it has none
      "submodule.recurse=false",    //
      "http.lowSpeedLimit=1",       // a server that says nothing for a minute
      "http.lowSpeedTime=60",
  };
  if (login.origin.empty() || login.password.empty()) return settings;
  settings.emplace_back("credential.helper=");  // none of the user's
  settings.push_back("credential." + login.origin + R"(.helper=!f() { test "$1" = get && cat <&)" +
                     std::to_string(kLoginDescriptor) + "; }; f");
  return settings;
}

}  // namespace

Result<Git> Git::in(std::filesystem::path folder, std::string url, GitLogin login) {
  auto program = base::find_program("git", base::current_environment());
  if (!program) {
    return Error{.code = ErrorCode::kNotFound,
                 .what = "git is not installed, and the workspace is a repository",
                 .advice = "install it (apt-get install git), or give a folder or a .zip"};
  }
  Git git;
  git.program_ = *std::move(program);
  git.folder_ = std::move(folder);
  git.settings_ = settings_for(url, login);
  git.login_ = std::move(login);
  return git;
}

Result<GitEnd> Git::run(const std::vector<std::string>& arguments, const OnGitLine& on_line) const {
  base::SpawnOptions options{.argv = {"git"},
                             .program = program_,
                             .environment = git_environment(base::current_environment()),
                             .folder = folder_};
  for (const std::string& setting : settings_) {
    options.argv.insert(options.argv.end(), {"-c", setting});
  }
  options.argv.insert(options.argv.end(), arguments.begin(), arguments.end());

  MUSTER_TRY(Pipe out, make_pipe());
  MUSTER_TRY(Pipe err, make_pipe());
  options.descriptors = {{out.write_end.get(), 1}, {err.write_end.get(), 2}};
  UniqueFd login;
  if (!login_.password.empty()) {
    MUSTER_TRY(login, login_pipe(login_));
    options.descriptors.emplace_back(login.get(), kLoginDescriptor);
  }
  MUSTER_TRY(const base::Child child, base::spawn(options));
  for (UniqueFd* ours : {&out.write_end, &err.write_end, &login}) ours->reset();

  GitEnd end;
  Lines lines(login_.password, on_line);
  MUSTER_CHECK(listen(child, std::move(out.read_end), std::move(err.read_end), end.out, lines));
  MUSTER_TRY(const int status, base::wait_for(child));
  end.ok = WIFEXITED(status) && WEXITSTATUS(status) == 0;
  end.said = std::move(lines).last();
  return end;
}

std::vector<std::string> git_environment(const std::vector<std::string>& ours) {
  // Which server to trust, how to reach it: the user's matter. GIT_DIR and the like speak of
  // another repository; GIT_TRACE would write down what is said.
  constexpr std::array<std::string_view, 6> kKept{"GIT_SSH",   "GIT_SSL_",    "GIT_PROXY_",
                                                  "GIT_HTTP_", "GIT_CONFIG_", "GIT_EXEC_PATH="};
  const auto is_kept = [&](const std::string& entry) {
    if (entry.starts_with("LC_") || entry.starts_with("LANGUAGE=")) return false;
    if (entry.starts_with("SSH_ASKPASS")) return false;
    return !entry.starts_with("GIT_") ||
           std::any_of(kKept.begin(), kKept.end(),
                       [&](std::string_view prefix) { return entry.starts_with(prefix); });
  };
  std::vector<std::string> environment;
  std::copy_if(ours.begin(), ours.end(), std::back_inserter(environment), is_kept);
  const bool own_ssh = std::any_of(environment.begin(), environment.end(), [](const auto& entry) {
    return entry.starts_with("GIT_SSH=") || entry.starts_with("GIT_SSH_COMMAND=");
  });
  if (!own_ssh) {
    environment.emplace_back("GIT_SSH_COMMAND=ssh -oBatchMode=yes -oConnectTimeout=30");
  }
  environment.insert(environment.end(),
                     {"GIT_TERMINAL_PROMPT=0", "GIT_ASKPASS=", "GCM_INTERACTIVE=never",
                      "GIT_ALLOW_PROTOCOL=https:http:ssh:git:file", "LC_ALL=C"});
  return environment;
}

std::string scrubbed(std::string_view line, std::string_view secret) {
  std::string text(line);
  if (secret.empty()) return text;
  replace_all(text, secret, "***");
  replace_all(text, percent_encoded(secret), "***");
  return text;
}

}  // namespace muster::workspace
