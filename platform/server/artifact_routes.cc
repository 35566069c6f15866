// GET /v1/jobs/{name}/artifacts and artifact: the files in a job's artifact folder.
//
// Permissions are checked on the loop's thread; the folder is read on another.
#include <algorithm>
#include <charconv>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "api/file_wire.h"
#include "base/event_loop.h"
#include "http/message.h"
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
using workspace::LeftFile;
using workspace::OpenedFile;

// --- the slow answers: a list with checksums, the checksum of a file, and the bytes of a file
//
// They read on threads of their own, so that neither a slow disk nor a very large file blocks the
// loop. They end when their client disconnects. ChecksumCache is thread-safe; all else runs on the
// EventLoop's thread.

constexpr size_t kPiece = 256 << 10;
/// The amount that is summed up at once, about a tenth of a second. In between, other requests are
/// served, and a disconnected client is noticed.
constexpr size_t kSummedAtOnce = size_t{32} << 20;
constexpr size_t kMostSums = 100'000;

/// The checksums of files that were read, as long as the files do not change.
class ChecksumCache {
 public:
  std::optional<std::string> find(const workspace::FileState& state) const;
  void keep(const workspace::FileState& state, const std::string& sum);

 private:
  mutable std::mutex mutex_;
  std::map<workspace::FileState, std::string> sums_;
};

/// The threads that read.
struct ArtifactWorkers {
  explicit ArtifactWorkers(base::EventLoop& loop) : reading(loop), summing(loop) {}

  ChecksumCache sums;
  base::Background reading;
  /// Separate, so that downloads do not wait for checksums.
  base::Background summing;
};

/// Whether the caller may still see the artifacts.
using MayGoOn = std::function<bool()>;

std::optional<std::string> ChecksumCache::find(const workspace::FileState& state) const {
  const std::lock_guard lock(mutex_);
  const auto found = sums_.find(state);
  return found == sums_.end() ? std::nullopt : std::optional(found->second);
}

void ChecksumCache::keep(const workspace::FileState& state, const std::string& sum) {
  const std::lock_guard lock(mutex_);
  // Any other entry may go: a sum that is missing is computed again.
  if (sums_.size() >= kMostSums && !sums_.contains(state)) sums_.erase(sums_.begin());
  sums_[state] = sum;
}

api::Artifact::Kind kind_of(LeftFile::Kind kind) {
  switch (kind) {
    case LeftFile::Kind::kFile:
      return api::Artifact::Kind::kFile;
    case LeftFile::Kind::kLink:
      return api::Artifact::Kind::kLink;
    case LeftFile::Kind::kFolder:
      return api::Artifact::Kind::kFolder;
    case LeftFile::Kind::kPipe:
      return api::Artifact::Kind::kPipe;
    case LeftFile::Kind::kSocket:
      return api::Artifact::Kind::kSocket;
    case LeftFile::Kind::kDevice:
      return api::Artifact::Kind::kDevice;
  }
  return api::Artifact::Kind::kFile;
}

/// A file as the API lists it.
std::string artifact_json(const LeftFile& file, const std::string& sum, bool is_first) {
  std::string text;
  api::append_artifact(text,
                       {.path = file.path,
                        .kind = kind_of(file.kind),
                        .bytes = file.bytes,
                        .modified = file.modified,
                        .sha256 = sum},
                       is_first);
  return text;
}

/// The common part of both: pieces that are made on another thread, one at a time.
class MadeElsewhere : public http::BodyStream {
 public:
  explicit MadeElsewhere(MayGoOn may_go_on) : may_go_on_(std::move(may_go_on)) {}

 protected:
  /// `make` runs on the other thread and uses only its own objects. Nothing: the end.
  using Make = std::function<std::optional<std::string>()>;
  void make(base::Background& background, Make make, Deliver deliver) {
    if (!may_go_on_()) return deliver(std::nullopt);
    const auto piece = std::make_shared<std::optional<std::string>>();
    background.run([piece, make = std::move(make)] { *piece = make(); },
                   [piece, deliver = std::move(deliver), alive = std::weak_ptr<bool>(alive_)] {
                     if (!alive.expired()) deliver(std::move(*piece));
                   });
  }

 private:
  MayGoOn may_go_on_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

class FileStream : public MadeElsewhere {
 public:
  FileStream(std::shared_ptr<ArtifactWorkers> workers, workspace::OpenedFile file, int64_t offset,
             int64_t length, MayGoOn may_go_on)
      : MadeElsewhere(std::move(may_go_on)),
        workers_(std::move(workers)),
        file_(std::make_shared<workspace::OpenedFile>(std::move(file))),
        at_(offset),
        end_(offset + length) {}

  void pull(Deliver deliver) override {
    if (at_ == end_) return deliver(std::nullopt);
    const auto most = static_cast<size_t>(std::min<int64_t>(kPiece, end_ - at_));
    const auto read = [file = file_, at = at_, most]() -> std::optional<std::string> {
      auto bytes = workspace::read_at(file->fd, at, most);
      if (!bytes || bytes->empty()) return std::nullopt;
      return *std::move(bytes);
    };
    at_ += static_cast<int64_t>(most);
    make(workers_->reading, read, std::move(deliver));
  }

 private:
  std::shared_ptr<ArtifactWorkers> workers_;
  std::shared_ptr<workspace::OpenedFile> file_;
  int64_t at_;
  int64_t end_;
};

/// The state of a list; used only by the summing thread after its creation.
class ListInTheMaking {
 public:
  ListInTheMaking(std::filesystem::path folder, workspace::LeftFiles page)
      : folder_(std::move(folder)), page_(std::move(page)) {}

  /// The next piece; empty: nothing to send yet.
  std::optional<std::string> next(ChecksumCache& sums) {
    if (ended_) return std::nullopt;
    std::string text(begun_ ? "" : api::artifacts_head());
    begun_ = true;
    size_t budget = kSummedAtOnce;
    while (at_ < page_.files.size() && budget > 0 && text.size() < kPiece) {
      const LeftFile& file = page_.files[at_];
      const auto sum = sum_of(file, sums, budget);
      if (!sum) return text;
      text += artifact_json(file, *sum, at_ == 0);
      ++at_;
    }
    if (at_ < page_.files.size()) return text;
    ended_ = true;
    return text + api::artifacts_tail(!page_.whole);
  }

 private:
  /// Nothing: it needs another turn. Empty: the file has no checksum.
  std::optional<std::string> sum_of(const LeftFile& file, ChecksumCache& sums, size_t& budget) {
    if (file.kind != LeftFile::Kind::kFile) return "";
    if (auto known = sums.find(file.state)) return known;
    if (!summing_) {
      auto opened = workspace::open_left(folder_, file.path);
      // The file has changed since it was listed: the checksum would match neither version.
      if (!opened || opened->state != file.state) return "";
      summing_.emplace(*std::move(opened));
    }
    const auto most = static_cast<size_t>(
        std::min<int64_t>(static_cast<int64_t>(budget), std::max<int64_t>(file.bytes, 1)));
    budget -= most;
    if (!summing_->go_on(most)) return std::nullopt;
    const auto sum = summing_->sum();
    summing_.reset();
    if (sum) sums.keep(file.state, *sum);
    return sum.value_or("");
  }

  std::filesystem::path folder_;
  workspace::LeftFiles page_;
  size_t at_ = 0;
  std::optional<workspace::Summing> summing_;
  bool begun_ = false;
  bool ended_ = false;
};

class ChecksumStream : public MadeElsewhere {
 public:
  ChecksumStream(std::shared_ptr<ArtifactWorkers> workers, ListInTheMaking list, MayGoOn may_go_on)
      : MadeElsewhere(std::move(may_go_on)),
        workers_(std::move(workers)),
        list_(std::make_shared<ListInTheMaking>(std::move(list))) {}

  void pull(Deliver deliver) override {
    make(
        workers_->summing,
        [list = list_, workers = workers_.get()] { return list->next(workers->sums); },
        std::move(deliver));
  }

 private:
  std::shared_ptr<ArtifactWorkers> workers_;
  std::shared_ptr<ListInTheMaking> list_;
};

/// A page as JSON, with the checksum of each file that does not change while it is read.
std::shared_ptr<http::BodyStream> checksum_stream(std::shared_ptr<ArtifactWorkers> workers,
                                                  std::filesystem::path folder,
                                                  workspace::LeftFiles page, MayGoOn may_go_on) {
  return std::make_shared<ChecksumStream>(std::move(workers),
                                          ListInTheMaking(std::move(folder), std::move(page)),
                                          std::move(may_go_on));
}

/// `length` bytes of an open file from `offset` on. Ends early if the file was truncated meanwhile.
std::shared_ptr<http::BodyStream> file_stream(std::shared_ptr<ArtifactWorkers> workers,
                                              workspace::OpenedFile file, int64_t offset,
                                              int64_t length, MayGoOn may_go_on) {
  return std::make_shared<FileStream>(std::move(workers), std::move(file), offset, length,
                                      std::move(may_go_on));
}

using Workers = std::shared_ptr<ArtifactWorkers>;

Result<const job::Job*> viewed_job(const Controller& controller, const ApiCall& call) {
  return Sight(controller, call.who)
      .job(call.path.at("name"), parameter(call.request, "project"), access::Role::kViewer);
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

struct ListRequest {
  std::filesystem::path folder;
  api::ArtifactQuery query;
  MayGoOn may_go_on;
};

Result<std::optional<ListRequest>> list_request_of(const Controller& controller,
                                                   const ApiCall& call) {
  MUSTER_TRY(const job::Job* const job, viewed_job(controller, call));
  MUSTER_TRY(api::ArtifactQuery query, api::artifact_query_from_parameters(call.request.query));
  const auto folder = controller.artifacts_folder(job->id);
  if (!folder) return std::optional<ListRequest>();
  return std::optional(ListRequest{.folder = *folder,
                                   .query = std::move(query),
                                   .may_go_on = may_still_see(controller, call, job->id)});
}

void list_artifacts(const Controller& controller, const Workers& workers, const ApiCall& call,
                    const Respond& respond) {
  const auto request = list_request_of(controller, call);
  if (!request) return respond(problem(request.error()));
  if (!*request) return respond(json_answer(200, artifact_page({})));
  using Found = Result<workspace::LeftFiles>;
  const auto found = std::make_shared<Found>(Found(workspace::LeftFiles{}));
  const auto look = [folder = (*request)->folder, query = (*request)->query, found] {
    *found = workspace::list_left(folder, {.prefix = query.prefix, .after = query.after});
  };
  // Weak: a waiting callback must not keep the workers alive.
  const std::weak_ptr<ArtifactWorkers> weak = workers;
  workers->reading.run(look, [weak, request = **request, found, respond] {
    if (!*found) return respond(problem(found->error()));
    if (!request.query.checksums) return respond(json_answer(200, artifact_page(**found)));
    Response answer = json_answer(200, "");
    answer.stream =
        checksum_stream(weak.lock(), request.folder, *std::move(*found), request.may_go_on);
    respond(std::move(answer));
  });
}

// --- one file

/// The two names of a file's present content. The one without a checksum is known at once.
struct Etags {
  std::string of_state;
  std::string of_sum;  ///< empty: the checksum is unknown

  const std::string& best() const { return of_sum.empty() ? of_state : of_sum; }
  bool contain(std::string_view etag) const {
    return etag == of_state || (!of_sum.empty() && etag == of_sum);
  }
};

Etags etags_of(const workspace::FileState& state, const std::optional<std::string>& sum) {
  return {.of_state = api::etag_of(std::to_string(state.inode) + "-" + std::to_string(state.bytes) +
                                   "-" + std::to_string(state.changed)),
          .of_sum = sum ? api::etag_of(*sum) : ""};
}

/// Whether `etag` is the name of a content by its SHA-256.
bool has_sum(std::string_view etag) {
  constexpr size_t kDigits = 64;
  return etag.size() == kDigits + 2 && etag.front() == '"' && etag.back() == '"' &&
         etag.substr(1, kDigits).find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

/// The range from the first requested byte to the last.
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

/// "bytes=10-", "bytes=10-19", "bytes=-5". Nothing: another kind of range, which may be ignored.
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

struct FileRequest {
  std::filesystem::path folder;
  std::string path;
  std::string range;
  std::string if_match;
  std::string if_range;
  std::string job;  ///< its name
  MayGoOn may_go_on;
  std::function<bool()> has_left;  ///< the client; may be empty
};

Result<FileRequest> file_request_of(const Controller& controller, const ApiCall& call) {
  MUSTER_TRY(const job::Job* const job, viewed_job(controller, call));
  FileRequest request{.folder = {},
                      .path = parameter(call.request, api::kArtifactPath),
                      .range = header(call.request, "range"),
                      .if_match = header(call.request, "if-match"),
                      .if_range = header(call.request, "if-range"),
                      .job = job->spec.name,
                      .may_go_on = may_still_see(controller, call, job->id),
                      .has_left = call.request.peer.has_left};
  const auto folder = controller.artifacts_folder(job->id);
  if (!folder) {
    return Error{.code = ErrorCode::kNotFound,
                 .what = "job '" + job->spec.name + "' has left no artifacts",
                 .advice = "tasks write artifacts into the folder of --artifacts"};
  }
  request.folder = *folder;
  return request;
}

Response unchanged_no_more(const FileRequest& request) {
  constexpr int kPreconditionFailed = 412;
  return problem({.code = ErrorCode::kConflict,
                  .what = workspace::shown(request.path) + " has changed since it was listed",
                  .advice = "list the artifacts again"},
                 kPreconditionFailed);
}

Response beyond_the_end(const FileRequest& request, int64_t bytes) {
  constexpr int kNoSuchRange = 416;
  Response answer =
      problem({.code = ErrorCode::kInvalid,
               .what = workspace::shown(request.path) + " has " + std::to_string(bytes) +
                       " bytes, and the requested range is beyond its end"},
              kNoSuchRange);
  answer.headers["content-range"] = "bytes */" + std::to_string(bytes);
  return answer;
}

/// The size is that at the time of opening: bytes that a task appends later are not sent.
Response file_answer(const Workers& workers, const FileRequest& request, OpenedFile file,
                     const std::optional<std::string>& sum) {
  constexpr int kPartial = 206;
  const Etags etags = etags_of(file.state, sum);
  if (!request.if_match.empty() && request.if_match != "*" && !etags.contain(request.if_match)) {
    return unchanged_no_more(request);
  }
  const int64_t bytes = file.state.bytes;
  const bool is_same = request.if_range.empty() || etags.contain(request.if_range);
  const auto part = is_same ? span_of(request.range, bytes) : std::nullopt;
  if (part && (part->begin >= part->end)) return beyond_the_end(request, bytes);
  const Span span = part.value_or(Span{.begin = 0, .end = bytes});
  Response answer{.status = part ? kPartial : 200,
                  .content_type = "application/octet-stream",
                  .headers = {{"content-length", std::to_string(span.end - span.begin)},
                              {"accept-ranges", "bytes"},
                              {"etag", etags.best()},
                              // A file that a task has created must not be executed as part of a
                              // web page.
                              {"content-disposition", "attachment"},
                              {"x-content-type-options", "nosniff"}}};
  if (part) {
    answer.headers["content-range"] = "bytes " + std::to_string(span.begin) + "-" +
                                      std::to_string(span.end - 1) + "/" + std::to_string(bytes);
  }
  answer.stream =
      file_stream(workers, std::move(file), span.begin, span.end - span.begin, request.may_go_on);
  return answer;
}

/// A file whose checksum is being computed; used by one thread at a time.
struct FileBeingSummed {
  workspace::Summing summing;
  bool is_summed = false;
  std::optional<std::string> sum = {};  ///< nothing: the file changed meanwhile
};

/// Computes the checksum step by step, so that other requests have their turns, then answers.
void sum_and_answer(const std::weak_ptr<ArtifactWorkers>& weak, const FileRequest& request,
                    const std::shared_ptr<FileBeingSummed>& file, const Respond& respond) {
  if (!request.may_go_on()) {
    return respond(
        problem({.code = ErrorCode::kNotFound, .what = "there is no job '" + request.job + "'"}));
  }
  if (request.has_left && request.has_left()) {
    return respond(problem({.code = ErrorCode::kUnavailable,
                            .what = "the checksum of " + workspace::shown(request.path) +
                                    " was not computed to its end",
                            .advice = "send the request again"}));
  }
  const Workers workers = weak.lock();
  const auto step = [file, sums = &workers->sums] {
    const bool has_changed = file->summing.has_changed();
    file->is_summed = has_changed || file->summing.go_on(kSummedAtOnce);
    if (!file->is_summed || has_changed) return;
    file->sum = file->summing.sum();
    if (file->sum) sums->keep(file->summing.file().state, *file->sum);
  };
  workers->summing.run(step, [weak, request, file, respond] {
    if (!file->is_summed) return sum_and_answer(weak, request, file, respond);
    respond(file_answer(weak.lock(), request, std::move(file->summing).take_file(), file->sum));
  });
}

/// A request may name the content by a checksum that is not known, because the server was restarted
/// or the cache is full.
void answer_with_file(const std::weak_ptr<ArtifactWorkers>& weak, const FileRequest& request,
                      OpenedFile file, const Respond& respond) {
  const Workers workers = weak.lock();
  const auto sum = workers->sums.find(file.state);
  if (sum || !(has_sum(request.if_match) || has_sum(request.if_range))) {
    return respond(file_answer(workers, request, std::move(file), sum));
  }
  const auto summed = std::make_shared<FileBeingSummed>(
      FileBeingSummed{.summing = workspace::Summing(std::move(file))});
  sum_and_answer(weak, request, summed, respond);
}

void fetch(const Controller& controller, const Workers& workers, const ApiCall& call,
           const Respond& respond) {
  const auto request = file_request_of(controller, call);
  if (!request) return respond(problem(request.error()));
  const auto opened = std::make_shared<std::optional<Result<OpenedFile>>>();
  const auto open = [folder = request->folder, path = request->path, opened] {
    opened->emplace(workspace::open_left(folder, path));
  };
  const std::weak_ptr<ArtifactWorkers> weak = workers;
  workers->reading.run(open, [weak, request = *request, opened, respond] {
    Result<OpenedFile>& file = **opened;
    if (!file) return respond(problem(file.error()));
    answer_with_file(weak, request, *std::move(file), respond);
  });
}

}  // namespace

void add_artifact_routes(Router& router, base::EventLoop& loop, Controller& controller) {
  const auto workers = std::make_shared<ArtifactWorkers>(loop);
  const auto add = [&](const char* path, auto answer) {
    router.add("GET", path, Permission::kSignedIn,
               [&controller, workers, answer](const ApiCall& call, const Respond& respond) {
                 answer(controller, workers, call, respond);
               });
  };
  add("/v1/jobs/{name}/artifacts", list_artifacts);
  add("/v1/jobs/{name}/artifact", fetch);
}

}  // namespace muster::server
