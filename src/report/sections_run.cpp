// The sections about the machine: time and memory, the timeline, the traffic.

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>

#include "base/bytes.hpp"
#include "report/page.hpp"
#include "report/text.hpp"

namespace strata::page {
namespace {

/// "measured" or "simulated".
const char* verb_of(const ReportData& data) { return data.simulated ? "simulated" : "measured"; }

std::string fact(const char* name, const std::string& value) {
  return fmt::format("<div><dt>{}</dt><dd>{}</dd></div>\n", name, value);
}

/// A labelled bar whose full width is `whole`.
std::string bar_row(const std::string& name, double value, double whole, const std::string& text,
                    const char* kind) {
  const double percent =
      whole > 0 && std::isfinite(value) ? std::clamp(value / whole, 0.0, 1.0) : 0;
  return fmt::format(
      R"(<tr><th scope="row">{}</th><td class="bar"><span class="{}" style="width:{:.2f}%"></span>
</td><td>{}</td></tr>
)",
      name, kind, 100 * percent, text);
}

std::string facts(const RunReport& run) {
  std::string list;
  if (run.n > 0) list += fact("Order", count_text(run.n));
  if (run.tile > 0) list += fact("Tile", count_text(run.tile));
  if (!run.policy.empty()) list += fact("Policy", escape(run.policy));
  if (!run.devices.empty()) {
    std::string names;
    for (const std::string& name : run.devices) names += (names.empty() ? "" : ", ") + escape(name);
    list += fact(run.devices.size() == 1 ? "Device" : "Devices", names);
  }
  if (run.n > 0) list += fact("Tuning", escape(run.tuning));
  if (run.tasks > 0) list += fact("Tasks", count_text(run.tasks));
  if (run.flops > 0) list += fact("Work", rate_text(run.flops, "flop"));
  if (run.flops > 0 && run.seconds > 0) {
    list += fact("Rate", rate_text(run.flops / run.seconds, "flop/s"));
  }
  return list.empty() ? "" : "<dl class=\"facts\">\n" + list + "</dl>\n";
}

std::string time_bars(const ReportData& data) {
  const RunReport& run = *data.run;
  // A run that was only simulated has nothing but the prediction.
  const bool only_simulated = data.simulated && run.seconds == 0 && run.predicted_seconds;
  const double seconds = only_simulated ? *run.predicted_seconds : run.seconds;
  const double longest =
      std::max({seconds, run.predicted_seconds.value_or(0), run.plan_seconds, run.pinning_seconds});
  if (!(longest > 0)) return "";
  std::string rows = bar_row(data.simulated ? "Simulated" : "Measured", seconds, longest,
                             seconds_text(seconds), "solid");
  if (run.predicted_seconds && !data.simulated) {
    rows += bar_row("Predicted", *run.predicted_seconds, longest,
                    seconds_text(*run.predicted_seconds), "outline");
  }
  if (run.plan_seconds > 0) {
    rows += bar_row("Planning", run.plan_seconds, longest, seconds_text(run.plan_seconds), "quiet");
  }
  if (run.pinning_seconds > 0) {
    rows += bar_row("Pinning host memory", run.pinning_seconds, longest,
                    seconds_text(run.pinning_seconds), "quiet");
  }
  return "<div><table class=\"bars\"><caption>Time</caption><tbody>\n" + rows +
         "</tbody></table></div>\n";
}

std::string memory_bars(const ReportData& data) {
  const RunReport& run = *data.run;
  if (run.peak_device_bytes <= 0) return "";
  const std::int64_t budget = data.device_memory_bytes;
  const auto whole = static_cast<double>(std::max(budget, run.peak_device_bytes));
  const bool over = budget > 0 && run.peak_device_bytes > budget;
  std::string rows = bar_row("Peak", static_cast<double>(run.peak_device_bytes), whole,
                             format_bytes(run.peak_device_bytes), over ? "bad" : "solid");
  if (budget > 0) {
    rows += bar_row("Budget", static_cast<double>(budget), whole, format_bytes(budget), "outline");
  }
  return "<div><table class=\"bars\"><caption>Memory of a device</caption><tbody>\n" + rows +
         "</tbody></table></div>\n";
}

struct Link {
  const char* name;
  std::int64_t Traffic::*member;
};
constexpr std::array<Link, 5> kLinks{{{"Host to device", &Traffic::host_to_device_bytes},
                                      {"Device to host", &Traffic::device_to_host_bytes},
                                      {"Device to device", &Traffic::device_to_device_bytes},
                                      {"Storage read", &Traffic::storage_read_bytes},
                                      {"Storage write", &Traffic::storage_write_bytes}}};

/// What the floor is a bound of: bytes over the links of the devices.
std::int64_t device_bytes(const Traffic& t) {
  return t.host_to_device_bytes + t.device_to_host_bytes + t.device_to_device_bytes;
}

std::string verdict(std::int64_t moved, std::int64_t planned) {
  if (moved == planned) return R"(<span class="good">✓<span class="word"> equal</span></span>)";
  const std::int64_t difference = moved - planned;
  return fmt::format(R"(<span class="wrong">✗ {} {}</span>)",
                     format_bytes(difference < 0 ? -difference : difference),
                     difference < 0 ? "less" : "more");
}

std::string traffic_row(const std::string& name, std::int64_t moved, std::int64_t planned,
                        std::int64_t whole, const std::string& row_class) {
  const auto percent = [whole](std::int64_t bytes) {
    return whole > 0 ? std::clamp(100.0 * static_cast<double>(bytes) / static_cast<double>(whole),
                                  0.0, 100.0)
                     : 0.0;
  };
  return fmt::format(
      R"(<tr{}><th scope="row">{}</th><td class="bar"><span class="outline"
style="width:{:.2f}%"></span><span class="solid" style="width:{:.2f}%"></span></td><td
title="{} B">{}</td><td title="{} B">{}</td><td>{}</td></tr>
)",
      row_class, name, percent(planned), percent(moved), count_text(moved), format_bytes(moved),
      count_text(planned), format_bytes(planned), verdict(moved, planned));
}

std::string floor_row(std::int64_t floor, std::int64_t moved, std::int64_t whole) {
  const double share =
      static_cast<double>(floor) / static_cast<double>(std::max<std::int64_t>(whole, 1));
  return fmt::format(
      R"(<tr class="floor"><th scope="row">Floor</th><td class="bar"><span class="mark"
style="width:{:.2f}%"></span></td><td title="{} B">{}</td><td></td><td><span class="word">moved
</span>{} ×<span class="word"> this</span></td></tr>
)",
      100 * std::clamp(share, 0.0, 1.0), count_text(floor), format_bytes(floor),
      fixed_text(static_cast<double>(moved) / static_cast<double>(floor), 2));
}

std::string traffic_heading(const ReportData& data) {
  const RunReport& run = *data.run;
  const std::int64_t moved = run.traffic.total();
  const std::int64_t floor = run.planned_traffic.floor_bytes;
  std::int64_t difference = 0;
  for (const Link& link : kLinks) {
    difference += std::abs(run.traffic.*link.member - run.planned_traffic.*link.member);
  }
  if (difference != 0) {
    return fmt::format("{} moved, which differs from the plan by {}", format_bytes(moved),
                       format_bytes(difference));
  }
  const std::string beside_floor =
      floor > 0
          ? fmt::format(
                ", {} × the floor",
                fixed_text(
                    static_cast<double>(device_bytes(run.traffic)) / static_cast<double>(floor), 2))
          : "";
  return fmt::format("{} moved, exactly as planned{}", format_bytes(moved), beside_floor);
}

/// Busy seconds of each code over all tracks, the longest first.
std::vector<std::pair<int, double>> shares_of(const Timeline& timeline) {
  std::vector<std::pair<int, double>> shares;
  if (timeline.tracks.empty()) return shares;
  for (std::size_t code = 0; code < timeline.tracks.front().seconds.size(); ++code) {
    double seconds = 0;
    bool any = false;
    for (const Track& track : timeline.tracks) seconds += track.seconds[code];
    for (const Track& track : timeline.tracks) {
      any = any || std::any_of(track.boxes.begin(), track.boxes.end(), [code](const Box& box) {
              return box.code == static_cast<int>(code);
            });
    }
    if (any || seconds > 0) shares.emplace_back(static_cast<int>(code), seconds);
  }
  std::stable_sort(shares.begin(), shares.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  return shares;
}

std::string legend(const Timeline& timeline) {
  const auto shares = shares_of(timeline);
  double total = 0;
  for (const auto& [code, seconds] : shares) total += seconds;
  std::string items;
  for (const auto& [code, seconds] : shares) {
    items += fmt::format(
        R"(<li><i class="swatch code-{}"></i>{} <span class="muted">{}</span></li>
)",
        code < 2 ? code : 2 + (code - 2) % 9, escape(code_name(code, timeline.operations)),
        percent_text(total > 0 ? seconds / total : 0));
  }
  return "<ul class=\"legend\" aria-label=\"Colours, and each operation’s share of the busy "
         "time\">\n" +
         items + "</ul>\n";
}

std::string queue_table(const Timeline& timeline) {
  std::string rows;
  for (const Track& track : timeline.tracks) {
    const double share = timeline.seconds > 0 ? track.busy_seconds / timeline.seconds : 0;
    rows += fmt::format(
        "<tr><th scope=\"row\">{}</th><td class=\"text\">{}</td><td>{}</td><td>{}</td><td>{}</td>"
        "<td>{}</td><td>{}</td></tr>\n",
        escape(track.device), escape(track.name), count_text(track.spans),
        seconds_text(track.busy_seconds), percent_text(share),
        track.bytes > 0 && track.busy_seconds > 0
            ? rate_text(track.bytes / track.busy_seconds, "B/s")
            : "",
        track.flops > 0 && track.busy_seconds > 0
            ? rate_text(track.flops / track.busy_seconds, "flop/s")
            : "");
  }
  return fmt::format(
      R"(<details><summary>The same as a table</summary><div class="scroll"><table><thead><tr><th
scope="col">device</th>
<th scope="col" class="text">queue</th><th scope="col">spans</th><th scope="col">busy</th><th
scope="col">of the run</th>
<th scope="col">while copying</th><th scope="col">while computing</th></tr></thead><tbody>
{}</tbody></table></div></details>
)",
      rows);
}

std::string timeline_heading(const Timeline& timeline, bool simulated) {
  const auto busiest = std::max_element(
      timeline.tracks.begin(), timeline.tracks.end(),
      [](const Track& a, const Track& b) { return a.busy_seconds < b.busy_seconds; });
  const double share = timeline.seconds > 0 ? busiest->busy_seconds / timeline.seconds : 0;
  const std::string device = busiest->device.empty() ? "" : " of " + escape(busiest->device);
  return fmt::format("The busiest queue, {}{}, {} {} of {}", escape(busiest->name), device,
                     simulated ? "works" : "worked", percent_text(share),
                     seconds_text(timeline.seconds));
}

}  // namespace

std::string run_section(const ReportData& data) {
  if (!data.run) return "";
  const RunReport& run = *data.run;
  const std::string bars = time_bars(data) + memory_bars(data);
  const std::string list = facts(run);
  if (bars.empty() && list.empty()) return "";
  std::string heading = fmt::format("The run is {}", verb_of(data));
  if (run.seconds > 0) {
    heading = fmt::format("{} {}", data.simulated ? "The simulated run takes" : "The run took",
                          seconds_text(run.seconds));
    if (run.flops > 0) heading += " at " + rate_text(run.flops / run.seconds, "flop/s");
  }
  return fmt::format("<section id=\"run\"><h2>{}</h2>\n{}<div class=\"two\">{}</div>\n</section>\n",
                     heading, list, bars);
}

std::string timeline_section(const ReportData& data, const Timeline& timeline) {
  if (!data.run) return "";
  if (timeline.spans == 0) {
    if (data.run->trace.spans_added <= Trace::kSpansMax) return "";
    return fmt::format(
        R"(<section id="timeline"><h2>The run is too long for a timeline</h2>
<p class="note">It has {} spans; past {} only totals are kept.</p></section>
)",
        count_text(data.run->trace.spans_added), count_text(Trace::kSpansMax));
  }
  const std::string merged =
      timeline.merged
          ? fmt::format(" {} spans; neighbours are merged where they are too short to see.",
                        count_text(timeline.spans))
          : fmt::format(" {}.", plural(timeline.spans, "span"));
  const std::string heading = timeline_heading(timeline, data.simulated);
  return fmt::format(
      R"(<section id="timeline"><h2>{0}</h2>
<p class="note">One track a queue.{1}</p>
{2}<div class="controls" role="group" aria-label="Zoom of the timeline"><button type="button"
data-zoom="in">Zoom in</button><button type="button" data-zoom="out">Zoom out</button><button
type="button" data-zoom="left" aria-label="Earlier">←</button><button type="button"
data-zoom="right" aria-label="Later">→</button><button type="button" data-zoom="all">Whole
run</button><span class="muted" data-zoom-text>Drag over a stretch to enlarge it.</span></div>
<div class="plot timeline" data-chart="timeline"><canvas tabindex="0" role="img"
aria-label="Timeline. {0}. Arrow keys move, plus and minus zoom, 0 shows the whole run."></canvas>
</div>
{3}</section>
)",
      heading, merged, legend(timeline), queue_table(timeline));
}

std::string traffic_section(const ReportData& data) {
  if (!data.run) return "";
  const RunReport& run = *data.run;
  if (run.traffic.total() == 0 && run.planned_traffic.total() == 0) return "";
  const std::int64_t whole =
      std::max({run.traffic.total(), run.planned_traffic.total(), run.planned_traffic.floor_bytes});
  std::string rows;
  int links = 0;
  for (const Link& link : kLinks) {
    const std::int64_t moved = run.traffic.*link.member;
    const std::int64_t planned = run.planned_traffic.*link.member;
    if (moved == 0 && planned == 0) continue;
    rows += traffic_row(link.name, moved, planned, whole, "");
    ++links;
  }
  if (links > 1) {
    rows += traffic_row("Total", run.traffic.total(), run.planned_traffic.total(), whole,
                        " class=\"total\"");
  }
  std::string note = fmt::format("Filled bars are {}, outlines planned.", verb_of(data));
  if (run.planned_traffic.floor_bytes > 0) {
    rows += floor_row(run.planned_traffic.floor_bytes, device_bytes(run.traffic), whole);
    note +=
        " The floor is the I/O lower bound for this memory, plus reading and writing the matrix "
        "once; it bounds what crosses the links of the devices.";
  }
  return fmt::format(
      R"(<section id="traffic"><h2>{}</h2>
<p class="note">{}</p>
<div class="scroll"><table class="bars traffic"><thead><tr><th scope="col">link</th><th scope="col"
aria-label="bar"></th>
<th scope="col">{}</th><th scope="col">planned</th><th scope="col">=<span class="word">
planned</span></th></tr></thead><tbody>
{}</tbody></table></div>
</section>
)",
      traffic_heading(data), note, verb_of(data), rows);
}

}  // namespace strata::page
