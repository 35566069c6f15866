#include "workspace/git_failure.h"

#include <algorithm>
#include <initializer_list>
#include <string_view>

namespace muster::workspace {

using base::Error;
using base::ErrorCode;

namespace {

bool says_any(const std::vector<std::string>& said, std::initializer_list<std::string_view> words) {
  return std::any_of(said.begin(), said.end(), [&](const std::string& line) {
    return std::any_of(words.begin(), words.end(),
                       [&](std::string_view word) { return line.find(word) != std::string::npos; });
  });
}

Error refused(const GitQuestion& question) {
  const std::string repository = "the repository '" + question.url + "'";
  if (question.over_ssh) {
    return {.code = ErrorCode::kRefused,
            .what = repository + " lets none of your ssh keys in",
            .advice = "try it: git ls-remote " + question.url +
                      "; a key with a passphrase must be in your ssh-agent (ssh-add)"};
  }
  if (question.had_password) {
    return {.code = ErrorCode::kRefused,
            .what = repository + " does not take the password that was given",
            .advice = "see that the user and the token are right and not expired" +
                      (question.flags.takes_password()
                           ? ": " + question.flags.username + ", " + question.flags.password
                           : "")};
  }
  return {.code = ErrorCode::kRefused,
          .what = repository + " wants a password, or does not exist",
          .advice = "if it is private, " +
                    (question.flags.takes_password()
                         ? "give " + question.flags.username + " and " + question.flags.password +
                               " (a token will do)"
                         : "have git keep a token for it (git help credentials), or give its ssh "
                           "address") +
                    "; if not, check its name"};
}

Error without_lines(const GitQuestion& question, const std::vector<std::string>& said) {
  const std::string repository = "the repository '" + question.url + "'";
  if (says_any(said, {"could not read Username", "could not read Password", "Authentication failed",
                      "Permission denied", "returned error: 401", "returned error: 403",
                      "terminal prompts disabled"})) {
    return refused(question);
  }
  if (says_any(said, {"Host key verification failed"})) {
    return {.code = ErrorCode::kRefused,
            .what = "the host of '" + question.url + "' is not among your known hosts",
            .advice = "connect to it once with ssh, and compare its fingerprint"};
  }
  if (says_any(said, {"couldn't find remote ref HEAD"})) {
    return {.code = ErrorCode::kNotFound,
            .what = repository + " has no commit, or no default branch",
            .advice = "push to it first, or say which branch: " + question.flags.ref + " BRANCH"};
  }
  if (says_any(said, {"couldn't find remote ref", "not our ref", "unadvertised object"})) {
    return {.code = ErrorCode::kNotFound,
            .what = repository + " has no branch, tag or commit '" + question.ref + "'",
            .advice = "see which there are: git ls-remote " + question.url};
  }
  if (says_any(said,
               {"Could not resolve host", "Couldn't resolve host", "Failed to connect",
                "Connection refused", "Connection reset", "timed out", "Network is unreachable",
                "No route to host", "Operation too slow", "returned error: 5", "Temporary failure",
                "unable to connect", "early EOF"})) {
    return {.code = ErrorCode::kUnavailable,
            .what = "the server of '" + question.url + "' does not answer as it should",
            .advice = "check the address and your network, or try again later"};
  }
  if (says_any(said, {"No space left on device"})) {
    return {.code = ErrorCode::kExhausted,
            .what = "there is no room to fetch " + repository,
            .advice = "point TMPDIR at a larger disk"};
  }
  if (says_any(said, {"not found", "does not exist", "does not appear to be a git repository",
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

Error git_failure(const GitQuestion& question, const std::vector<std::string>& said) {
  Error error = without_lines(question, said);
  for (const std::string& line : said) error.faults.push_back({.field = "git", .what = line});
  return error;
}

bool wants_whole_history(const std::vector<std::string>& said) {
  return says_any(said, {"does not support shallow"});
}

}  // namespace muster::workspace
