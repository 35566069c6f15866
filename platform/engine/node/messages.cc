#include "engine/node/messages.h"

#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/json_text.h"
#include "base/text.h"
#include "base/units.h"
#include "engine/node/fields.h"

namespace muster::engine::node {

using base::Error;
using base::ErrorCode;
using base::Result;
using nlohmann::json;

namespace {

constexpr std::string_view kGreeting = "MUSTER-NODE";
constexpr std::string_view kDialGreeting = "MUSTER-SERVER";
constexpr std::string_view kVersion = "1";
/// The limit for messages without plans and files.
constexpr size_t kSmallMessage = 256 << 10;

enum class Kind : uint8_t {
  kHello = 'H',
  kStartAnswer = 'S',
  kChangeAnswer = 'C',
  kAnswered = 'A',
  kEnded = 'E',
  kGrown = 'G',
  kRecord = 'R',
  kSignalled = 'K',
  kStreamRefused = 'N',
  kLeft = 'L',
  kWelcome = 'w',
  kStart = 's',
  kStop = 't',
  kChange = 'c',
  kExec = 'x',
  kAttach = 'a',
  kArtifacts = 'f',
  kFarewell = 'q',
  kBytes = 'b',
  kEnd = 'e',
};

Error none(const char* what = "unknown message") {
  return {.code = ErrorCode::kInvalid, .what = what};
}

/// A job's id is also the name of a folder, and a word of the caller's line.
bool is_job_id(std::string_view id) {
  constexpr size_t kLongest = 128;
  if (id.empty() || id.size() > kLongest || id.front() == '.') return false;
  for (const char c : id) {
    const bool known = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '-' || c == '_' || c == '.';
    if (!known) return false;
  }
  return true;
}

// --- encoding

struct Encoded {
  Kind kind;
  std::string body;
};

Encoded fields(Kind kind, const json& value) {
  return {kind, base::cbor_text(value)};
}

json with_error(json value, const std::optional<Error>& error) {
  if (error) value["error"] = error_json(*error);
  return value;
}

json hello_json(const Hello& hello) {
  json value{{"stream", hello.stream},
             {"component", hello.facts.component},
             {"index", hello.facts.index},
             {"slurm_job", hello.facts.allocation},
             {"restarts", hello.facts.restarts},
             {"node", binary(hello.facts.node)},
             {"address", binary(hello.address)},
             {"shares_folder", hello.shares_folder},
             {"gpus", binaries(hello.facts.gpus)},
             {"gpu_indices", hello.facts.gpu_indices},
             {"version", binary(hello.version)},
             {"holds_task", hello.holds_task},
             {"start", hello.start},
             {"instance", binary(hello.facts.instance)}};
  if (hello.image) value["image"] = node::to_json(*hello.image);
  return value;
}

json ended_json(const TaskEnded& end) {
  const auto& [code, signal, out_of_memory, stopped, lost, error, advice, lost_log_bytes, limit,
               pod] = end.status;
  static_cast<void>(pod);  // only a server has the end of a pod
  json value{{"code", code},
             {"signal", signal},
             {"out_of_memory", out_of_memory},
             {"stopped", stopped},
             {"lost", lost},
             {"error", binary(error.substr(0, kLongestWords))},
             {"advice", binary(advice.substr(0, kLongestWords))},
             {"lost_log_bytes", lost_log_bytes},
             {"ended_ns", end.time.time_since_epoch().count()}};
  if (limit) {
    value["limit"] = static_cast<int>(limit->limit);
    value["limit_bound"] = limit->bound;
    value["limit_peak"] = limit->peak;
  }
  return value;
}

json start_json(const StartOrder& order) {
  const auto& [attempt, start, plan, programs, folder, storage, is_shared, log_quota, limits,
               first_sample_ms, sample_interval_ms, hidden, filter, trees] = order;
  return {{"attempt", attempt},
          {"start", start},
          {"plan", node::to_json(plan)},
          {"programs", binary(programs)},
          {"folder", binary(folder)},
          {"storage", binary(storage)},
          {"is_shared", is_shared},
          {"log_quota", log_quota},
          {"processes", limits.processes},
          {"open_files", limits.open_files},
          {"file_bytes", limits.file_bytes},
          {"scratch_bytes", limits.scratch_bytes},
          {"first_sample_ms", first_sample_ms},
          {"sample_interval_ms", sample_interval_ms},
          {"hidden", binaries(hidden)},
          {"filter", binary(filter)},
          {"trees", trees}};
}

struct Encode {
  Encoded operator()(const Hello& hello) const { return fields(Kind::kHello, hello_json(hello)); }
  Encoded operator()(const StartAnswer& answer) const {
    return fields(Kind::kStartAnswer, with_error(json::object(), answer.error));
  }
  Encoded operator()(const ChangeAnswer& answer) const {
    return fields(Kind::kChangeAnswer, with_error({{"number", answer.number}}, answer.error));
  }
  Encoded operator()(const AnsweredNews&) const { return {Kind::kAnswered, ""}; }
  Encoded operator()(const EndedNews& news) const {
    return fields(Kind::kEnded, ended_json(news.end));
  }
  Encoded operator()(const GrownNews& news) const {
    return fields(Kind::kGrown, {{"log", news.log}, {"ranks", news.ranks}});
  }
  Encoded operator()(const RecordNews& news) const {
    return {Kind::kRecord, engine::encode(news.record)};
  }
  Encoded operator()(const SignalledNews& news) const {
    return fields(Kind::kSignalled, {{"signal", news.signal}});
  }
  Encoded operator()(const StreamRefused& refused) const {
    return fields(Kind::kStreamRefused, with_error({{"stream", refused.stream}}, refused.error));
  }
  Encoded operator()(const LeftNews&) const { return {Kind::kLeft, ""}; }
  Encoded operator()(const Welcome& welcome) const {
    return fields(Kind::kWelcome, {{"log_offset", welcome.log_offset},
                                   {"metrics_offset", welcome.metrics_offset},
                                   {"start", welcome.start}});
  }
  Encoded operator()(const StartOrder& order) const {
    return fields(Kind::kStart, start_json(order));
  }
  Encoded operator()(const StopOrder& order) const {
    return fields(Kind::kStop, {{"mode", static_cast<int>(order.mode)}});
  }
  Encoded operator()(const ChangeOrder& order) const {
    return fields(Kind::kChange,
                  {{"number", order.number}, {"change", node::to_json(order.change)}});
  }
  Encoded operator()(const ExecOrder& order) const {
    return fields(Kind::kExec, {{"stream", order.stream}, {"plan", node::to_json(order.plan)}});
  }
  Encoded operator()(const AttachOrder& order) const {
    return fields(Kind::kAttach, {{"stream", order.stream}});
  }
  Encoded operator()(const ArtifactsOrder& order) const {
    return fields(Kind::kArtifacts, {{"stream", order.stream}});
  }
  Encoded operator()(const Farewell& farewell) const {
    return fields(Kind::kFarewell,
                  {{"code", farewell.code}, {"keeps_artifacts", farewell.keeps_artifacts}});
  }
  Encoded operator()(const StreamBytes& bytes) const { return {Kind::kBytes, bytes.bytes}; }
  Encoded operator()(const StreamEnd& end) const {
    json value = with_error(json::object(), end.error);
    if (!end.notes.empty()) value["notes"] = binaries(end.notes);
    return fields(Kind::kEnd, value);
  }
  Encoded operator()(const NodeNews& news) const { return std::visit(*this, news); }
  Encoded operator()(const NodeOrder& order) const { return std::visit(*this, order); }
};

// --- decoding

/// 0 in messages of a release that did not number starts.
uint64_t start_number_of(const Fields& fields) {
  return fields.has("start") ? fields.count("start") : 0;
}

Hello hello_of(const Fields& fields) {
  std::optional<launch::ImageFacts> image;
  if (fields.has("image")) image = image_facts_of(fields.at("image"));
  return {
      .stream = fields.count("stream"),
      .facts = {.component = fields.number<int>("component"),
                .index = fields.number<int>("index"),
                .allocation = fields.count("slurm_job"),
                .restarts = fields.number<int>("restarts"),
                .node = fields.text("node", kLongestName),
                .gpus = fields.texts("gpus", kLongestName),
                .gpu_indices = fields.numbers("gpu_indices"),
                .instance = fields.has("instance") ? fields.text("instance", kLongestName) : ""},
      .address = fields.text("address", kLongestName),
      .shares_folder = fields.flag("shares_folder"),
      .version = fields.text("version", kLongestName),
      .holds_task = fields.flag("holds_task"),
      .start = start_number_of(fields),
      .image = std::move(image)};
}

std::optional<job::LimitReached> limit_of(const Fields& fields) {
  if (!fields.has("limit")) return std::nullopt;
  return job::LimitReached{.limit = fields.one_of("limit", job::Limit::kFileSize),
                           .bound = fields.number<int64_t>("limit_bound"),
                           .peak = fields.number<int64_t>("limit_peak")};
}

EndedNews ended_of(const Fields& fields) {
  constexpr int kLeast = std::numeric_limits<int>::min();
  constexpr int64_t kEarliest = std::numeric_limits<int64_t>::min();
  return {.end = {.status = {.code = fields.number<int>("code", kLeast),
                             .signal = fields.number<int>("signal"),
                             .out_of_memory = fields.flag("out_of_memory"),
                             .stopped = fields.flag("stopped"),
                             .lost = fields.flag("lost"),
                             .error = fields.text("error", kLongestWords),
                             .advice = fields.text("advice", kLongestWords),
                             .lost_log_bytes = fields.number<int64_t>("lost_log_bytes"),
                             .limit = limit_of(fields)},
                  .time = base::Time(
                      std::chrono::nanoseconds(fields.number<int64_t>("ended_ns", kEarliest)))}};
}

StartOrder start_of(const Fields& fields) {
  StartOrder order{.attempt = fields.number<int>("attempt", 1),
                   .start = start_number_of(fields),
                   .plan = task_plan_of(fields.at("plan")),
                   .programs = fields.text("programs", kLongestPath),
                   .folder = fields.text("folder", kLongestPath),
                   .storage = fields.text("storage", kLongestPath),
                   .is_shared = fields.flag("is_shared"),
                   .log_quota = fields.count("log_quota"),
                   .limits = {.processes = fields.number<int64_t>("processes"),
                              .open_files = fields.number<int64_t>("open_files"),
                              .file_bytes = fields.number<int64_t>("file_bytes"),
                              .scratch_bytes = fields.number<int64_t>("scratch_bytes")},
                   .first_sample_ms = fields.count("first_sample_ms"),
                   .sample_interval_ms = fields.count("sample_interval_ms"),
                   .hidden = fields.texts("hidden", kLongestPath),
                   .filter = fields.text("filter", kLongestFilter),
                   .trees = {}};
  for (const json& stream : fields.list("trees")) {
    if (!stream.is_number_unsigned()) throw BadField();
    order.trees.push_back(stream.get<uint64_t>());
  }
  return order;
}

RecordNews record_of(std::string_view body) {
  FollowReader reader;
  reader.add(body);
  auto record = reader.next();
  if (!record || reader.waiting() != 0) throw BadField();
  return {.record = *std::move(record)};
}

bool is_large(Kind kind) {
  return kind == Kind::kStart || kind == Kind::kChange || kind == Kind::kExec ||
         kind == Kind::kBytes;
}

NodeMessage empty_message(std::string_view body, NodeMessage message) {
  if (!body.empty()) throw BadField();
  return message;
}

NodeMessage message_of(Kind kind, std::string_view body) {
  if (kind == Kind::kBytes) return StreamBytes{std::string(body)};
  if (kind == Kind::kRecord) return NodeNews(record_of(body));
  if (kind == Kind::kAnswered) return empty_message(body, NodeNews(AnsweredNews{}));
  if (kind == Kind::kLeft) return empty_message(body, NodeNews(LeftNews{}));
  const json value = parse_fields(body);
  const Fields fields(value);
  switch (kind) {
    case Kind::kHello:
      return NodeNews(hello_of(fields));
    case Kind::kStartAnswer:
      return NodeNews(StartAnswer{fields.error_if_any("error")});
    case Kind::kChangeAnswer:
      return NodeNews(ChangeAnswer{fields.count("number"), fields.error_if_any("error")});
    case Kind::kEnded:
      return NodeNews(ended_of(fields));
    case Kind::kGrown:
      return NodeNews(GrownNews{.log = fields.flag("log"), .ranks = fields.flag("ranks")});
    case Kind::kSignalled:
      return NodeNews(SignalledNews{fields.number<int>("signal")});
    case Kind::kStreamRefused:
      return NodeNews(StreamRefused{fields.count("stream"), fields.error("error")});
    case Kind::kWelcome:
      return NodeOrder(Welcome{.log_offset = fields.count("log_offset"),
                               .metrics_offset = fields.count("metrics_offset"),
                               .start = start_number_of(fields)});
    case Kind::kStart:
      return NodeOrder(start_of(fields));
    case Kind::kStop:
      return NodeOrder(StopOrder{fields.one_of("mode", StopMode::kNow)});
    case Kind::kChange:
      return NodeOrder(ChangeOrder{fields.count("number"), file_change_of(fields.at("change"))});
    case Kind::kExec:
      return NodeOrder(ExecOrder{fields.count("stream"), exec_plan_of(fields.at("plan"))});
    case Kind::kAttach:
      return NodeOrder(AttachOrder{fields.count("stream")});
    case Kind::kArtifacts:
      return NodeOrder(ArtifactsOrder{fields.count("stream")});
    case Kind::kFarewell:
      return NodeOrder(Farewell{
          .code = fields.number<int>("code", 0, 255),
          // Not in messages of earlier releases.
          .keeps_artifacts = fields.has("keeps_artifacts") && fields.flag("keeps_artifacts")});
    case Kind::kEnd:
      return StreamEnd{.error = fields.error_if_any("error"),
                       .notes = fields.has("notes") ? fields.texts("notes", kLongestWords)
                                                    : std::vector<std::string>{}};
    default:
      throw BadField();
  }
}

}  // namespace

std::string encode(const Caller& caller) {
  std::string line(kGreeting);
  line.append(" ").append(kVersion).append(" ").append(caller.gang.job_id);
  return line.append(" ").append(std::to_string(caller.gang.attempt)).append("\n");
}

Result<Caller> decode_caller(std::string_view line) {
  if (line.ends_with('\n')) line.remove_suffix(1);
  const std::vector<std::string> words = base::split(line, ' ');
  const auto attempt = words.size() == 4 ? base::number_of<int>(words[3]) : std::nullopt;
  if (!attempt || *attempt < 1 || words[0] != kGreeting || !is_job_id(words[2])) {
    return none("the caller is not a muster-node");
  }
  if (words[1] != kVersion) return none("muster-node is from another release");
  return Caller{.gang = {.job_id = words[2], .attempt = *attempt}};
}

std::string encode(const ServerDial& dial) {
  std::string line(kDialGreeting);
  line.append(" ").append(kVersion).append(" ").append(std::to_string(dial.stream));
  return line.append("\n");
}

Result<ServerDial> decode_server_dial(std::string_view line) {
  if (line.ends_with('\n')) line.remove_suffix(1);
  const std::vector<std::string> words = base::split(line, ' ');
  const auto stream = words.size() == 3 ? base::number_of<uint64_t>(words[2]) : std::nullopt;
  if (!stream || words[0] != kDialGreeting) return none("the caller is not Muster's server");
  if (words[1] != kVersion) return none("the server is from another release");
  return ServerDial{.stream = *stream};
}

std::string encode_node(const NodeMessage& message) {
  const Encoded encoded = std::visit(Encode{}, message);
  return base::encode_frame(static_cast<char>(encoded.kind), encoded.body);
}

Result<NodeMessage> decode_node(char tag, std::string_view body) {
  const auto kind = static_cast<Kind>(tag);
  if (body.size() > kSmallMessage && !is_large(kind)) return none();
  try {
    return message_of(kind, body);
  } catch (const BadField&) {
    return none();
  } catch (const json::exception&) {  // invalid UTF-8, for example
    return none();
  }
}

Result<std::optional<NodeMessage>> NodeReader::next() {
  MUSTER_TRY(const auto frame, frames_.front());
  if (!frame) return std::optional<NodeMessage>();
  auto message = decode_node(frame->tag, frame->bytes);
  frames_.pop(*frame);
  if (!message) return std::move(message).error();
  return std::optional(*std::move(message));
}

}  // namespace muster::engine::node
