#include "engine/node/fields.h"

#include <array>
#include <chrono>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/json_text.h"
#include "engine/plain_cbor.h"

namespace muster::engine::node {

using nlohmann::json;

namespace {

template <class Pairs>
json list_of(const Pairs& pairs) {
  json list = json::array();
  for (const auto& [name, text] : pairs) list.push_back(json::array({binary(name), binary(text)}));
  return list;
}

}  // namespace

json binary(const std::string& text) {
  return json(json::binary_t({text.begin(), text.end()}));
}

json binaries(const std::vector<std::string>& texts) {
  json list = json::array();
  for (const std::string& text : texts) list.push_back(binary(text));
  return list;
}

json binary_pairs(const std::map<std::string, std::string>& pairs) {
  return list_of(pairs);
}

json binary_pairs(const std::vector<std::pair<std::string, std::string>>& pairs) {
  return list_of(pairs);
}

json error_json(const base::Error& error) {
  return {{"code", std::string(to_string(error.code))},
          {"what", binary(error.what.substr(0, kLongestWords))},
          {"advice", binary(error.advice.substr(0, kLongestWords))}};
}

json parse_fields(std::string_view text) {
  if (!is_plain_cbor(text)) throw BadField();
  return base::parse_cbor_or_throw(text);
}

std::string text_of(const json& value, size_t most) {
  if (!value.is_binary()) throw BadField();
  const json::binary_t& bytes = value.get_binary();
  if (bytes.size() > most) throw BadField();
  return {bytes.begin(), bytes.end()};
}

int64_t number_of(const json& value, int64_t least, int64_t most) {
  if (!value.is_number_integer()) throw BadField();
  const bool is_too_large =
      value.is_number_unsigned() &&
      value.get<uint64_t>() > static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
  const auto number = value.get<int64_t>();
  if (is_too_large || number < least || number > most) throw BadField();
  return number;
}

Fields::Fields(const json& object) : object_(object) {
  if (!object.is_object()) throw BadField();
}

const json& Fields::at(const char* name) const {
  const auto found = object_.find(name);
  if (found == object_.end()) throw BadField();
  return *found;
}

bool Fields::has(const char* name) const {
  return object_.contains(name);
}

const json& Fields::list(const char* name) const {
  const json& value = at(name);
  if (!value.is_array()) throw BadField();
  return value;
}

std::string Fields::text(const char* name, size_t most) const {
  return text_of(at(name), most);
}

std::vector<std::string> Fields::texts(const char* name, size_t most) const {
  std::vector<std::string> texts;
  for (const json& text : list(name)) texts.push_back(text_of(text, most));
  return texts;
}

std::vector<std::pair<std::string, std::string>> Fields::pairs(const char* name) const {
  std::vector<std::pair<std::string, std::string>> pairs;
  for (const json& pair : list(name)) {
    if (!pair.is_array() || pair.size() != 2) throw BadField();
    pairs.emplace_back(text_of(pair[0], kAnyLength), text_of(pair[1], kAnyLength));
  }
  return pairs;
}

bool Fields::flag(const char* name) const {
  const json& value = at(name);
  if (!value.is_boolean()) throw BadField();
  return value.get<bool>();
}

uint64_t Fields::count(const char* name) const {
  const json& value = at(name);
  if (!value.is_number_unsigned()) throw BadField();
  return value.get<uint64_t>();
}

std::vector<int> Fields::numbers(const char* name) const {
  std::vector<int> numbers;
  for (const json& value : list(name)) {
    numbers.push_back(static_cast<int>(
        number_of(value, std::numeric_limits<int>::min(), std::numeric_limits<int>::max())));
  }
  return numbers;
}

base::Error Fields::error(const char* name) const {
  const Fields fields(at(name));
  const json& code = fields.at("code");
  if (!code.is_string()) throw BadField();
  return {.code = base::error_code_of(code.get_ref<const std::string&>()),
          .what = fields.text("what", kLongestWords),
          .advice = fields.text("advice", kLongestWords)};
}

std::optional<base::Error> Fields::error_if_any(const char* name) const {
  return has(name) ? std::optional(error(name)) : std::nullopt;
}

// --- plans

namespace {

constexpr int kLastPort = 65535;
constexpr mode_t kModeBits = 07777;

std::map<std::string, std::string> map_of(const Fields& fields, const char* name) {
  std::map<std::string, std::string> map;
  for (auto& [key, value] : fields.pairs(name)) map[key] = std::move(value);
  return map;
}

json to_json(const launch::PlannedFile& file) {
  const auto& [path, content, mode, secret] = file;
  return {{"path", binary(path)}, {"content", binary(content)}, {"mode", mode}, {"secret", secret}};
}

launch::PlannedFile file_of(const json& value) {
  const Fields fields(value);
  return {.path = fields.text("path", kLongestPath),
          .content = fields.text("content"),
          .mode = fields.number<mode_t>("mode", 0, kModeBits),
          .secret = fields.flag("secret")};
}

json to_json(const std::vector<launch::PlannedFile>& files) {
  json list = json::array();
  for (const launch::PlannedFile& file : files) list.push_back(to_json(file));
  return list;
}

std::vector<launch::PlannedFile> files_of(const json& list) {
  std::vector<launch::PlannedFile> files;
  for (const json& file : list) files.push_back(file_of(file));
  return files;
}

json to_json(const launch::SshService& ssh) {
  const auto& [port, command, bind] = ssh;
  return {{"port", port}, {"command", binaries(command)}, {"bind", binary(bind)}};
}

launch::SshService ssh_of(const json& value) {
  const Fields fields(value);
  return {.port = fields.number<int>("port", 0, kLastPort),
          .command = fields.texts("command"),
          .bind = fields.text("bind", kLongestName)};
}

json to_json(const std::vector<launch::ServedPort>& ports) {
  json list = json::array();
  for (const auto& [port, address] : ports) {
    list.push_back({{"port", port}, {"address", binary(address)}});
  }
  return list;
}

std::vector<launch::ServedPort> ports_of(const json& list) {
  std::vector<launch::ServedPort> ports;
  for (const json& value : list) {
    const Fields fields(value);
    ports.push_back({.port = fields.number<int>("port", 0, kLastPort),
                     .address = fields.text("address", kLongestName)});
  }
  return ports;
}

json to_json(const launch::MpiChoice& choice) {
  const auto& [program, variants] = choice;
  json list = json::array();
  for (const auto& [kind, variant] : variants) {
    const auto& [environment, files] = variant;
    list.push_back({{"kind", static_cast<int>(kind)},
                    {"environment", binary_pairs(environment)},
                    {"files", binary_pairs(files)}});
  }
  return {{"program", binary(program)}, {"variants", std::move(list)}};
}

launch::MpiChoice mpi_of(const json& value) {
  const Fields fields(value);
  launch::MpiChoice choice{.program = fields.text("program", kLongestPath), .variants = {}};
  for (const json& variant : fields.list("variants")) {
    const Fields of(variant);
    choice.variants[of.one_of("kind", job::MpiKind::kIntel)] = {
        .environment = map_of(of, "environment"), .files = map_of(of, "files")};
  }
  return choice;
}

json to_json(const launch::Account& account) {
  const auto& [uid, gid, name, home] = account;
  return {{"uid", uid}, {"gid", gid}, {"name", binary(name)}, {"home", binary(home)}};
}

launch::Account account_of(const json& value) {
  const Fields fields(value);
  return {.uid = fields.number<uid_t>("uid"),
          .gid = fields.number<gid_t>("gid"),
          .name = fields.text("name", kLongestName),
          .home = fields.text("home", kLongestPath)};
}

json to_json(const job::ContainerSpec& spec) {
  const auto& [pull, writable_root, new_privileges, capabilities, shm_bytes] = spec;
  return {{"pull", static_cast<int>(pull)},
          {"writable_root", writable_root},
          {"new_privileges", new_privileges},
          {"capabilities", binaries(capabilities)},
          {"shm_bytes", shm_bytes}};
}

job::ContainerSpec container_of(const json& value) {
  const Fields fields(value);
  return {.pull = fields.one_of("pull", job::PullPolicy::kNever),
          .writable_root = fields.flag("writable_root"),
          .new_privileges = fields.flag("new_privileges"),
          .capabilities = fields.texts("capabilities", kLongestName),
          .shm_bytes = fields.number<int64_t>("shm_bytes")};
}

json to_json(const job::Resources& resources) {
  const auto& [gpus, gpu_share_milli, gpu_memory_bytes, cpu_milli, memory_bytes] = resources;
  return {{"gpus", gpus},
          {"gpu_share_milli", gpu_share_milli},
          {"gpu_memory_bytes", gpu_memory_bytes},
          {"cpu_milli", cpu_milli},
          {"memory_bytes", memory_bytes}};
}

job::Resources resources_of(const json& value) {
  const Fields fields(value);
  return {.gpus = fields.number<int>("gpus"),
          .gpu_share_milli = fields.number<int>("gpu_share_milli"),
          .gpu_memory_bytes = fields.number<int64_t>("gpu_memory_bytes"),
          .cpu_milli = fields.number<int64_t>("cpu_milli"),
          .memory_bytes = fields.number<int64_t>("memory_bytes")};
}

json to_json(const std::vector<job::Volume>& volumes) {
  json list = json::array();
  for (const auto& [kind, source, target, read_only] : volumes) {
    list.push_back({{"kind", static_cast<int>(kind)},
                    {"source", binary(source)},
                    {"target", binary(target)},
                    {"read_only", read_only}});
  }
  return list;
}

std::vector<job::Volume> volumes_of(const json& list) {
  std::vector<job::Volume> volumes;
  for (const json& value : list) {
    const Fields fields(value);
    volumes.push_back({.kind = fields.one_of("kind", job::Volume::Kind::kArtifacts),
                       .source = fields.text("source", kLongestPath),
                       .target = fields.text("target", kLongestPath),
                       .read_only = fields.flag("read_only")});
  }
  return volumes;
}

}  // namespace

// Structured bindings name every member, so that a new member does not compile until it is sent.
json to_json(const launch::TaskPlan& plan) {
  const auto& [task, role, node, hostname, reach, address, argv, environment, folder, image,
               account, container, resources, devices, project, owner, unix_account, volumes,
               sandbox, grace, files, folders, ssh, serves, also_at, mpi, takes_ranks, input,
               terminal, gpus, own_rank_output, tags_ranks, prepends_rank, hosts] = plan;
  json value{{"task", binary(task)},
             {"role", static_cast<int>(role)},
             {"node", binary(node)},
             {"hostname", binary(hostname)},
             {"reach", static_cast<int>(reach)},
             {"address", binary(address)},
             {"argv", binaries(argv)},
             {"environment", binary_pairs(environment)},
             {"folder", binary(folder)},
             {"image", binary(image)},
             {"account", to_json(account)},
             {"container", to_json(container)},
             {"resources", to_json(resources)},
             {"devices", devices},
             {"project", binary(project)},
             {"owner", binary(owner)},
             {"unix_account", binary(unix_account)},
             {"volumes", to_json(volumes)},
             {"sandbox", static_cast<int>(sandbox)},
             {"grace_ms", grace.count()},
             {"files", to_json(files)},
             {"folders", binaries(folders)},
             {"serves", to_json(serves)},
             {"also_at", binary_pairs(also_at)},
             {"takes_ranks", takes_ranks},
             {"input", input},
             {"terminal", terminal},
             {"gpus", binaries(gpus)},
             {"own_rank_output", own_rank_output},
             {"tags_ranks", tags_ranks},
             {"prepends_rank", prepends_rank},
             {"hosts", binary_pairs(hosts)}};
  if (ssh) value["ssh"] = to_json(*ssh);
  if (mpi) value["mpi"] = to_json(*mpi);
  return value;
}

launch::TaskPlan task_plan_of(const json& value) {
  const Fields fields(value);
  launch::TaskPlan plan{.task = fields.text("task", kLongestName),
                        .role = fields.one_of("role", job::TaskRole::kEvaluator),
                        .node = fields.text("node", kLongestName),
                        .hostname = fields.text("hostname", kLongestName),
                        .reach = fields.one_of("reach", launch::Reach::kHosts),
                        .address = fields.text("address", kLongestName),
                        .argv = fields.texts("argv"),
                        .environment = map_of(fields, "environment"),
                        .folder = fields.text("folder", kLongestPath),
                        .image = fields.text("image", kLongestPath),
                        .account = account_of(fields.at("account")),
                        .container = container_of(fields.at("container")),
                        .resources = resources_of(fields.at("resources")),
                        .devices = fields.numbers("devices"),
                        .project = fields.text("project", kLongestName),
                        .owner = fields.text("owner", kLongestName),
                        .unix_account = fields.text("unix_account", kLongestName),
                        .volumes = volumes_of(fields.list("volumes")),
                        .sandbox = fields.one_of("sandbox", job::Sandbox::kNone),
                        .grace = std::chrono::milliseconds(fields.number<int64_t>("grace_ms")),
                        .files = files_of(fields.list("files")),
                        .folders = fields.texts("folders", kLongestPath),
                        .ssh = std::nullopt,
                        .serves = ports_of(fields.list("serves")),
                        .also_at = map_of(fields, "also_at"),
                        .mpi = std::nullopt,
                        .takes_ranks = fields.flag("takes_ranks"),
                        .input = fields.flag("input"),
                        .terminal = fields.flag("terminal"),
                        .gpus = fields.texts("gpus", kLongestName),
                        .own_rank_output = fields.flag("own_rank_output"),
                        .tags_ranks = fields.flag("tags_ranks"),
                        .prepends_rank = fields.flag("prepends_rank"),
                        .hosts = fields.pairs("hosts")};
  if (fields.has("ssh")) plan.ssh = ssh_of(fields.at("ssh"));
  if (fields.has("mpi")) plan.mpi = mpi_of(fields.at("mpi"));
  return plan;
}

json to_json(const launch::FileChange& change) {
  const auto& [task, files, hosts] = change;
  return {{"task", binary(task)}, {"files", to_json(files)}, {"hosts", binary_pairs(hosts)}};
}

launch::FileChange file_change_of(const json& value) {
  const Fields fields(value);
  return {.task = fields.text("task", kLongestName),
          .files = files_of(fields.list("files")),
          .hosts = fields.pairs("hosts")};
}

json to_json(const ExecPlan& plan) {
  const auto& [helper, argv, environment, terminal, rows, columns] = plan;
  return {{"helper", static_cast<int>(helper)},
          {"argv", binaries(argv)},
          {"environment", binary_pairs(environment)},
          {"terminal", terminal},
          {"rows", rows},
          {"columns", columns}};
}

ExecPlan exec_plan_of(const json& value) {
  const Fields fields(value);
  return {.helper = fields.one_of("helper", Helper::kConnect),
          .argv = fields.texts("argv"),
          .environment = map_of(fields, "environment"),
          .terminal = fields.flag("terminal"),
          .rows = fields.number<int>("rows"),
          .columns = fields.number<int>("columns")};
}

json to_json(const launch::ImageFacts& facts) {
  const auto& [image, id, entrypoint, command, environment, folder, account, sshd, has_ssh,
               has_shell] = facts;
  return {{"image", binary(image)},
          {"id", binary(id)},
          {"entrypoint", binaries(entrypoint)},
          {"command", binaries(command)},
          {"environment", binary_pairs(environment)},
          {"folder", binary(folder)},
          {"account", to_json(account)},
          {"sshd", binary(sshd)},
          {"has_ssh", has_ssh},
          {"has_shell", has_shell}};
}

launch::ImageFacts image_facts_of(const json& value) {
  const Fields fields(value);
  return {.image = fields.text("image", kLongestPath),
          .id = fields.text("id", kLongestPath),
          .entrypoint = fields.texts("entrypoint"),
          .command = fields.texts("command"),
          .environment = map_of(fields, "environment"),
          .folder = fields.text("folder", kLongestPath),
          .account = account_of(fields.at("account")),
          .sshd = fields.text("sshd", kLongestPath),
          .has_ssh = fields.flag("has_ssh"),
          .has_shell = fields.flag("has_shell")};
}

}  // namespace muster::engine::node
