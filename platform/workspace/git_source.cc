#include "workspace/git_source.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <initializer_list>
#include <optional>
#include <string_view>
#include <system_error>

#include "base/files.h"
#include "base/subprocess.h"
#include "workspace/repository_url.h"
#include "workspace/sources.h"

namespace muster::workspace {

using base::Error;
using base::ErrorCode;
using base::UniqueFd;

namespace {

constexpr const char* kFetchedRef = "refs/muster/wanted";

/// The protocol of git's credential helpers is line-based.
bool fits_a_line(const std::string& text) {
  constexpr size_t kLongest = 4096;
  return text.size() <= kLongest &&
         text.find_first_of(std::string("\r\n\0", 3)) == std::string::npos;
}

GitLogin login_of(const WorkspaceSource& source, const RepositoryUrl& repository) {
  GitLogin login{.origin = repository.origin,
                 .username = source.username.empty() ? repository.username : source.username,
                 .password = source.password};
  // With a token the name does not matter, but git does not send an empty one.
  if (login.username.empty()) login.username = "git";
  return login;
}

class Fetching {
 public:
  Fetching(const Git& git, const WorkspaceSource& source, const RepositoryUrl& repository,
           const OnGitLine& on_line)
      : git_(git),
        ref_(source.ref),
        on_line_(on_line),
        question_{.url = repository.url,
                  .ref = source.ref,
                  .had_password = !source.password.empty(),
                  .over_ssh = repository.over_ssh,
                  .flags = source.flags} {}

  /// Checks the files out into the folder and returns the id of the commit.
  Result<std::string> check_out() {
    MUSTER_CHECK(run({"init", "--quiet", "--template="}));
    MUSTER_CHECK(fetch());
    MUSTER_CHECK(run({"checkout", "--quiet", "--detach", "--force", kFetchedRef}));
    MUSTER_TRY(const GitEnd head, run({"rev-parse", "HEAD"}));
    return head.out.substr(0, head.out.find('\n'));
  }

 private:
  Result<GitEnd> run(const std::vector<std::string>& arguments) const {
    MUSTER_TRY(GitEnd end, git_.run(arguments, on_line_));
    if (!end.ok) return git_failure(question_, end.error_lines);
    return end;
  }

  Result<GitEnd> fetch_into(std::vector<std::string> arguments, const std::string& ref) const {
    arguments.insert(arguments.begin(), {"fetch", "--progress", "--no-tags",
                                         "--no-write-fetch-head", "--no-recurse-submodules"});
    arguments.insert(arguments.end(), {"origin", "+" + ref + ":" + kFetchedRef});
    return git_.run(arguments, on_line_);
  }

  Result<void> fetch() const {
    const std::string ref = ref_.empty() ? "HEAD" : ref_;
    MUSTER_TRY(GitEnd end, fetch_into({"--depth=1"}, ref));
    if (!end.ok && needs_whole_history(end.error_lines)) {
      MUSTER_TRY(end, fetch_into({}, ref));
    }
    if (end.ok) return {};
    const Error error = git_failure(question_, end.error_lines);
    const bool may_be_hidden = error.code == ErrorCode::kNotFound && may_be_commit(ref_);
    return may_be_hidden ? fetch_all() : error;
  }

  /// For a commit that no branch or tag points at: not every server sends a commit by its id, and
  /// no server by the beginning of an id.
  Result<void> fetch_all() const {
    if (on_line_) on_line_("looking for commit " + ref_ + " in the whole history");
    MUSTER_CHECK(run({"fetch", "--progress", "--no-tags", "--no-recurse-submodules", "origin",
                      "+refs/heads/*:refs/fetched/heads/*", "+refs/tags/*:refs/fetched/tags/*"}));
    MUSTER_TRY(const GitEnd found, git_.run({"update-ref", kFetchedRef, ref_ + "^{commit}"}));
    if (found.ok) return {};
    return Error{.code = ErrorCode::kNotFound,
                 .what = "the repository '" + question_.url + "' has no branch, tag or commit '" +
                         ref_ + "'",
                 .advice = "list them: git ls-remote " + question_.url};
  }

  const Git& git_;
  const std::string& ref_;
  const OnGitLine& on_line_;
  GitQuestion question_;
};

}  // namespace

Result<void> check_repository(const WorkspaceSource& source) {
  MUSTER_TRY(const RepositoryUrl repository, parse_repository_url(source.where, source.flags));
  if (!source.ref.empty()) MUSTER_CHECK(check_ref(source.ref));
  if (!fits_a_line(source.username) || !fits_a_line(source.password)) {
    return invalid_source(
        "the user or the password for the workspace has a line break, or is too long",
        "give it without line breaks");
  }
  if (repository.over_ssh && !source.password.empty()) {
    return invalid_source(
        "'" + repository.url + "' is reached by ssh, which uses keys and no password",
        "leave " + (source.flags.takes_password() ? source.flags.password : "the password") +
            " out, or give the https:// URL of the repository");
  }
  return {};
}

Result<Fetched> fetch_repository(const WorkspaceSource& source, const OnGitLine& on_line) {
  MUSTER_CHECK(check_repository(source));
  MUSTER_TRY(const RepositoryUrl repository, parse_repository_url(source.where, source.flags));
  MUSTER_TRY(Fetched fetched, own_folder());
  MUSTER_TRY(const Git git, Git::in(fetched.folder, repository.url, login_of(source, repository)));
  MUSTER_TRY(fetched.commit, Fetching(git, source, repository, on_line).check_out());
  MUSTER_CHECK(base::remove_tree(fetched.folder / ".git"));
  std::error_code ignored;
  if (std::filesystem::exists(fetched.folder / ".gitmodules", ignored)) {
    fetched.note = "the repository has submodules, which are not fetched";
  }
  return fetched;
}

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

/// A pipe with the credential helper's answer, which can be read once. git asks a second time only
/// if the first answer was wrong.
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

/// Splits git's output into lines. Progress is overwritten in place, so it ends with '\r'.
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

/// Reads the available bytes; false at the end.
bool drain(const UniqueFd& fd, const std::function<void(std::string_view)>& take) {
  std::array<char, 16 << 10> buffer{};
  while (true) {
    const ssize_t count = ::read(fd.get(), buffer.data(), buffer.size());
    if (count > 0) take({buffer.data(), static_cast<size_t>(count)});
    if (count == 0) return false;
    if (count < 0 && errno != EINTR) return errno == EAGAIN;
  }
}

/// Waits until git has ended. Its pipes may stay open for hours, held by a process that git has
/// left running, such as the master of an ssh connection.
Result<void> listen(const base::Child& child, UniqueFd out, UniqueFd err, std::string& output,
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
    if (out && !drain(out, [&](std::string_view text) { output += text; })) out.reset();
    if (err && !drain(err, [&](std::string_view text) { lines.take(text); })) err.reset();
  }
  lines.finish();
  return {};
}

std::vector<std::string> settings_for(const std::string& url, const GitLogin& login) {
  std::vector<std::string> settings{
      "remote.origin.url=" + url,
      "core.hooksPath=/dev/null",   // hooks of a user's template must not run
      "gc.auto=0",                  // would continue in the background
      "maintenance.auto=false",     //
      "advice.detachedHead=false",  //
      "init.defaultBranch=main",    // avoids git's long hint about it
      "submodule.recurse=false",    //
      "http.lowSpeedLimit=1",       // gives up after a minute of silence
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
                 .advice = "install git (apt-get install git), or give a folder or a .zip file"};
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
  end.error_lines = std::move(lines).last();
  return end;
}

std::vector<std::string> git_environment(const std::vector<std::string>& ours) {
  // The user configures which server to trust and how to reach it, so these are kept. GIT_DIR and
  // the like would select another repository; GIT_TRACE would log the password.
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

namespace {

bool mentions_any(const std::vector<std::string>& error_lines,
                  std::initializer_list<std::string_view> words) {
  return std::any_of(error_lines.begin(), error_lines.end(), [&](const std::string& line) {
    return std::any_of(words.begin(), words.end(),
                       [&](std::string_view word) { return line.find(word) != std::string::npos; });
  });
}

Error refused(const GitQuestion& question) {
  const std::string repository = "the repository '" + question.url + "'";
  if (question.over_ssh) {
    return {.code = ErrorCode::kRefused,
            .what = repository + " rejects all your ssh keys",
            .advice = "try it: git ls-remote " + question.url +
                      "; a key with a passphrase must be in your ssh-agent (ssh-add)"};
  }
  if (question.had_password) {
    return {.code = ErrorCode::kRefused,
            .what = repository + " rejects the given password",
            .advice = "check that the user and the token are correct and not expired" +
                      (question.flags.takes_password()
                           ? ": " + question.flags.username + ", " + question.flags.password
                           : "")};
  }
  return {
      .code = ErrorCode::kRefused,
      .what = repository + " requires a password, or does not exist",
      .advice =
          "if it is private, " +
          (question.flags.takes_password()
               ? "give " + question.flags.username + " and " + question.flags.password +
                     " (or a token)"
               : "store a token for it in git (git help credentials), or give its ssh address") +
          "; if not, check its name"};
}

Error without_lines(const GitQuestion& question, const std::vector<std::string>& error_lines) {
  const std::string repository = "the repository '" + question.url + "'";
  if (mentions_any(error_lines,
                   {"could not read Username", "could not read Password", "Authentication failed",
                    "Permission denied", "returned error: 401", "returned error: 403",
                    "terminal prompts disabled"})) {
    return refused(question);
  }
  if (mentions_any(error_lines, {"Host key verification failed"})) {
    return {.code = ErrorCode::kRefused,
            .what = "the host of '" + question.url + "' is not among your known hosts",
            .advice = "connect to it once with ssh, and compare its fingerprint"};
  }
  if (mentions_any(error_lines, {"couldn't find remote ref HEAD"})) {
    return {.code = ErrorCode::kNotFound,
            .what = repository + " has no commit, or no default branch",
            .advice = "push to it first, or give a branch: " + question.flags.ref + " BRANCH"};
  }
  if (mentions_any(error_lines,
                   {"couldn't find remote ref", "not our ref", "unadvertised object"})) {
    return {.code = ErrorCode::kNotFound,
            .what = repository + " has no branch, tag or commit '" + question.ref + "'",
            .advice = "list them: git ls-remote " + question.url};
  }
  if (mentions_any(error_lines,
                   {"Could not resolve host", "Couldn't resolve host", "Failed to connect",
                    "Connection refused", "Connection reset", "timed out", "Network is unreachable",
                    "No route to host", "Operation too slow", "returned error: 5",
                    "Temporary failure", "unable to connect", "early EOF"})) {
    return {.code = ErrorCode::kUnavailable,
            .what = "the server of '" + question.url + "' does not answer correctly",
            .advice = "check the address and your network, or try again later"};
  }
  if (mentions_any(error_lines, {"No space left on device"})) {
    return {.code = ErrorCode::kExhausted,
            .what = "there is no disk space to fetch " + repository,
            .advice = "set TMPDIR to a folder on a larger disk"};
  }
  if (mentions_any(error_lines,
                   {"not found", "does not exist", "does not appear to be a git repository",
                    "No such file or directory"})) {
    return {.code = ErrorCode::kNotFound,
            .what = "there is no repository '" + question.url + "'",
            .advice = "check its address: git ls-remote " + question.url};
  }
  return {.code = ErrorCode::kInvalid,
          .what = "git could not fetch " + repository,
          .advice = "try it: git ls-remote " + question.url};
}

}  // namespace

Error git_failure(const GitQuestion& question, const std::vector<std::string>& error_lines) {
  Error error = without_lines(question, error_lines);
  for (const std::string& line : error_lines)
    error.faults.push_back({.field = "git", .what = line});
  return error;
}

bool needs_whole_history(const std::vector<std::string>& error_lines) {
  return mentions_any(error_lines, {"does not support shallow"});
}

}  // namespace muster::workspace
