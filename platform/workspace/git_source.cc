#include "workspace/git_source.h"

#include <algorithm>
#include <system_error>

#include "base/files.h"
#include "workspace/git_failure.h"
#include "workspace/own_folder.h"
#include "workspace/repository_url.h"

namespace muster::workspace {

using base::Error;
using base::ErrorCode;

namespace {

constexpr const char* kWanted = "refs/muster/wanted";

/// git's helpers speak in lines.
bool fits_a_line(const std::string& text) {
  constexpr size_t kLongest = 4096;
  return text.size() <= kLongest &&
         text.find_first_of(std::string("\r\n\0", 3)) == std::string::npos;
}

GitLogin login_of(const Source& source, const RepositoryUrl& repository) {
  GitLogin login{.origin = repository.origin,
                 .username = source.username.empty() ? repository.username : source.username,
                 .password = source.password};
  // Who has a token needs no name, but an empty one is not sent.
  if (login.username.empty()) login.username = "git";
  return login;
}

class Fetching {
 public:
  Fetching(const Git& git, const Source& source, const RepositoryUrl& repository,
           const OnGitLine& on_line)
      : git_(git),
        ref_(source.ref),
        on_line_(on_line),
        question_{.url = repository.url,
                  .ref = source.ref,
                  .had_password = !source.password.empty(),
                  .over_ssh = repository.over_ssh,
                  .flags = source.flags} {}

  /// The id of the commit, whose files are in the folder then.
  Result<std::string> check_out() {
    MUSTER_CHECK(run({"init", "--quiet", "--template="}));
    MUSTER_CHECK(fetch());
    MUSTER_CHECK(run({"checkout", "--quiet", "--detach", "--force", kWanted}));
    MUSTER_TRY(const GitEnd head, run({"rev-parse", "HEAD"}));
    return head.out.substr(0, head.out.find('\n'));
  }

 private:
  Result<GitEnd> run(const std::vector<std::string>& arguments) const {
    MUSTER_TRY(GitEnd end, git_.run(arguments, on_line_));
    if (!end.ok) return git_failure(question_, end.said);
    return end;
  }

  Result<GitEnd> fetch_into(std::vector<std::string> arguments, const std::string& ref) const {
    arguments.insert(arguments.begin(), {"fetch", "--progress", "--no-tags",
                                         "--no-write-fetch-head", "--no-recurse-submodules"});
    arguments.insert(arguments.end(), {"origin", "+" + ref + ":" + kWanted});
    return git_.run(arguments, on_line_);
  }

  Result<void> fetch() const {
    const std::string ref = ref_.empty() ? "HEAD" : ref_;
    MUSTER_TRY(GitEnd end, fetch_into({"--depth=1"}, ref));
    if (!end.ok && wants_whole_history(end.said)) {
      MUSTER_TRY(end, fetch_into({}, ref));
    }
    if (end.ok) return {};
    const Error error = git_failure(question_, end.said);
    const bool may_be_hidden = error.code == ErrorCode::kNotFound && may_be_commit(ref_);
    return may_be_hidden ? fetch_all() : error;
  }

  /// For a commit that no branch or tag stands at: not every server hands it out by its id, and
  /// none by the beginning of it.
  Result<void> fetch_all() const {
    if (on_line_) on_line_("looking for commit " + ref_ + " in the whole history");
    MUSTER_CHECK(run({"fetch", "--progress", "--no-tags", "--no-recurse-submodules", "origin",
                      "+refs/heads/*:refs/fetched/heads/*", "+refs/tags/*:refs/fetched/tags/*"}));
    MUSTER_TRY(const GitEnd found, git_.run({"update-ref", kWanted, ref_ + "^{commit}"}));
    if (found.ok) return {};
    return Error{.code = ErrorCode::kNotFound,
                 .what = "the repository '" + question_.url + "' has no branch, tag or commit '" +
                         ref_ + "'",
                 .advice = "see which there are: git ls-remote " + question_.url};
  }

  const Git& git_;
  const std::string& ref_;
  const OnGitLine& on_line_;
  GitQuestion question_;
};

}  // namespace

Result<void> check_repository(const Source& source) {
  MUSTER_TRY(const RepositoryUrl repository, parse_repository_url(source.where, source.flags));
  if (!source.ref.empty()) MUSTER_CHECK(check_ref(source.ref));
  if (!fits_a_line(source.username) || !fits_a_line(source.password)) {
    return invalid_source(
        "the user or the password for the workspace has a line break, or is too long",
        "give it without");
  }
  if (repository.over_ssh && !source.password.empty()) {
    return invalid_source(
        "'" + repository.url + "' is reached by ssh, which takes keys and no password",
        "leave " + (source.flags.takes_password() ? source.flags.password : "the password") +
            " out, or give the https:// URL of the repository");
  }
  return {};
}

Result<Fetched> fetch_repository(const Source& source, const OnGitLine& on_line) {
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

}  // namespace muster::workspace
