// GET /v1/jobs/{name}/artifacts and artifact: what a job has left in its artifacts folder.
//
// Who may ask is decided on the loop's thread; the folder is looked at on another.
#include <charconv>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "api/file_wire.h"
#include "server/artifact_streams.h"
#include "server/router.h"
#include "server/routes.h"
#include "server/sight.h"
#include "workspace/left_files.h"
#include "workspace/path_text.h"

namespace muster::server {

namespace {

using base::Error;
using base::ErrorCode;
using base::Result;
using control::Controller;
using http::Respond;
using http::Response;
using workspace::OpenedFile;

using Workers = std::shared_ptr<ArtifactWorkers>;

Result<const job::Job*> viewed_job(const Controller& controller, const Call& call) {
  return Sight(controller, call.who)
      .job(call.path.at("name"), parameter(call.request, "project"), access::Role::kViewer);
}

/// Its project may have been moved below another meanwhile, or the token revoked. A job that was
/// deleted has nobody to see it; what is open of it is sent to its end.
MayGoOn may_go_on(const Controller& controller, const Call& call, std::string job_id) {
  return [&controller, who = call.who, still_valid = call.still_valid, id = std::move(job_id)] {
    if (still_valid && !still_valid()) return false;
    const job::Job* const job = controller.jobs().with_id(id);
    return job == nullptr || Sight(controller, who).sees(*job);
  };
}

// --- the list

std::string artifact_page(const workspace::LeftFiles& files) {
  std::string text(api::artifacts_head());
  bool is_first = true;
  for (const workspace::LeftFile& file : files.files) {
    text += artifact_json(file, "", std::exchange(is_first, false));
  }
  return text + api::artifacts_tail(!files.whole);
}

struct Wanted {
  std::filesystem::path folder;
  api::ArtifactQuery query;
  MayGoOn may_go_on;
};

Result<std::optional<Wanted>> wanted_list(const Controller& controller, const Call& call) {
  MUSTER_TRY(const job::Job* const job, viewed_job(controller, call));
  MUSTER_TRY(api::ArtifactQuery query, api::artifact_query_from_parameters(call.request.query));
  const auto folder = controller.artifacts_folder(job->id);
  if (!folder) return std::optional<Wanted>();
  return std::optional(Wanted{.folder = *folder,
                              .query = std::move(query),
                              .may_go_on = may_go_on(controller, call, job->id)});
}

void list_artifacts(const Controller& controller, const Workers& workers, const Call& call,
                    const Respond& respond) {
  const auto wanted = wanted_list(controller, call);
  if (!wanted) return respond(problem(wanted.error()));
  if (!*wanted) return respond(json_answer(200, artifact_page({})));
  using Found = Result<workspace::LeftFiles>;
  const auto found = std::make_shared<Found>(Found(workspace::LeftFiles{}));
  const auto look = [folder = (*wanted)->folder, query = (*wanted)->query, found] {
    *found = workspace::list_left(folder, {.prefix = query.prefix, .after = query.after});
  };
  // Weak: what waits for a thread must not keep it.
  const std::weak_ptr<ArtifactWorkers> weak = workers;
  workers->reading.run(look, [weak, wanted = **wanted, found, respond] {
    if (!*found) return respond(problem(found->error()));
    if (!wanted.query.checksums) return respond(json_answer(200, artifact_page(**found)));
    Response answer = json_answer(200, "");
    answer.stream =
        checksum_stream(weak.lock(), wanted.folder, *std::move(*found), wanted.may_go_on);
    respond(std::move(answer));
  });
}

// --- one file

/// What stands for the content that a file has now.
std::string etag_of(const workspace::FileState& state, const ChecksumCache& sums) {
  const auto sum = sums.find(state);
  return api::etag_of(sum ? *sum
                          : std::to_string(state.inode) + "-" + std::to_string(state.bytes) + "-" +
                                std::to_string(state.changed));
}

/// From the first byte that is wanted to behind the last.
struct Span {
  int64_t begin = 0;
  int64_t end = 0;
};

std::optional<int64_t> number_of(std::string_view text) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool is_one = error == std::errc() && end == text.data() + text.size() && number >= 0;
  return is_one ? std::optional(number) : std::nullopt;
}

/// "bytes=10-", "bytes=10-19", "bytes=-5". Nothing: it asks for something else, and may be ignored.
std::optional<Span> span_of(std::string_view range, int64_t bytes) {
  constexpr std::string_view kUnit = "bytes=";
  if (!range.starts_with(kUnit)) return std::nullopt;
  range.remove_prefix(kUnit.size());
  const size_t dash = range.find('-');
  if (dash == std::string_view::npos) return std::nullopt;
  const auto first = number_of(range.substr(0, dash));
  const auto last = number_of(range.substr(dash + 1));
  if (dash == 0) {
    if (!last) return std::nullopt;
    return Span{.begin = std::max<int64_t>(0, bytes - *last), .end = bytes};
  }
  if (!first || (!last && dash + 1 < range.size()) || (last && *last < *first)) return std::nullopt;
  return Span{.begin = *first, .end = last && *last < bytes ? *last + 1 : bytes};
}

struct FileWish {
  std::filesystem::path folder;
  std::string path;
  std::string range;
  std::string if_match;
  std::string if_range;
  MayGoOn may_go_on;
};

Result<FileWish> wanted_file(const Controller& controller, const Call& call) {
  MUSTER_TRY(const job::Job* const job, viewed_job(controller, call));
  FileWish wish{.folder = {},
                .path = parameter(call.request, api::kArtifactPath),
                .range = header(call.request, "range"),
                .if_match = header(call.request, "if-match"),
                .if_range = header(call.request, "if-range"),
                .may_go_on = may_go_on(controller, call, job->id)};
  const auto folder = controller.artifacts_folder(job->id);
  if (!folder) {
    return Error{.code = ErrorCode::kNotFound,
                 .what = "job '" + job->spec.name + "' has left no artifacts",
                 .advice = "tasks leave them in the folder that --artifacts gives the job"};
  }
  wish.folder = *folder;
  return wish;
}

Response unchanged_no_more(const FileWish& wish) {
  constexpr int kPreconditionFailed = 412;
  return problem({.code = ErrorCode::kConflict,
                  .what = workspace::shown(wish.path) + " is not the file any more that was meant",
                  .advice = "list the artifacts again"},
                 kPreconditionFailed);
}

Response beyond_the_end(const FileWish& wish, int64_t bytes) {
  constexpr int kNoSuchRange = 416;
  Response answer = problem({.code = ErrorCode::kInvalid,
                             .what = workspace::shown(wish.path) + " has " + std::to_string(bytes) +
                                     " bytes; none of what is asked for"},
                            kNoSuchRange);
  answer.headers["content-range"] = "bytes */" + std::to_string(bytes);
  return answer;
}

/// Its size is what it was when it was opened: what a task writes meanwhile is not sent.
Response file_answer(const Workers& workers, const FileWish& wish, OpenedFile file) {
  constexpr int kPartial = 206;
  const std::string etag = etag_of(file.state, workers->sums);
  if (!wish.if_match.empty() && wish.if_match != "*" && wish.if_match != etag) {
    return unchanged_no_more(wish);
  }
  const int64_t bytes = file.state.bytes;
  const bool is_same = wish.if_range.empty() || wish.if_range == etag;
  const auto part = is_same ? span_of(wish.range, bytes) : std::nullopt;
  if (part && (part->begin >= part->end)) return beyond_the_end(wish, bytes);
  const Span span = part.value_or(Span{.begin = 0, .end = bytes});
  Response answer{.status = part ? kPartial : 200,
                  .content_type = "application/octet-stream",
                  .headers = {{"content-length", std::to_string(span.end - span.begin)},
                              {"accept-ranges", "bytes"},
                              {"etag", etag},
                              // What a task has made must not run in the page of a dashboard.
                              {"content-disposition", "attachment"},
                              {"x-content-type-options", "nosniff"}}};
  if (part) {
    answer.headers["content-range"] = "bytes " + std::to_string(span.begin) + "-" +
                                      std::to_string(span.end - 1) + "/" + std::to_string(bytes);
  }
  answer.stream =
      file_stream(workers, std::move(file), span.begin, span.end - span.begin, wish.may_go_on);
  return answer;
}

void fetch(const Controller& controller, const Workers& workers, const Call& call,
           const Respond& respond) {
  const auto wish = wanted_file(controller, call);
  if (!wish) return respond(problem(wish.error()));
  const auto opened = std::make_shared<std::optional<Result<OpenedFile>>>();
  const auto open = [folder = wish->folder, path = wish->path, opened] {
    opened->emplace(workspace::open_left(folder, path));
  };
  const std::weak_ptr<ArtifactWorkers> weak = workers;
  workers->reading.run(open, [weak, wish = *wish, opened, respond] {
    Result<OpenedFile>& file = **opened;
    if (!file) return respond(problem(file.error()));
    respond(file_answer(weak.lock(), wish, *std::move(file)));
  });
}

}  // namespace

void add_artifact_routes(Router& router, base::EventLoop& loop, Controller& controller) {
  const auto workers = std::make_shared<ArtifactWorkers>(loop);
  const auto add = [&](const char* path, auto answer) {
    router.add("GET", path, Permission::kSignedIn,
               [&controller, workers, answer](const Call& call, const Respond& respond) {
                 answer(controller, workers, call, respond);
               });
  };
  add("/v1/jobs/{name}/artifacts", list_artifacts);
  add("/v1/jobs/{name}/artifact", fetch);
}

}  // namespace muster::server
