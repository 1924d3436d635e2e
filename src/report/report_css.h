// The style of the HTML report. Its digest is in the page's policy: change it here only.
#pragma once

#include <string_view>

namespace firestop::report {

inline constexpr std::string_view kReportCss = R"css(
:root{--ground:#fbfaf8;--card:#fff;--ink:#22211f;--soft:#6b6862;--line:#e4e1db;--good:#2c7a4b;--warn:#9a5b00;
--bad:#b3261e;--bar:#8b9bb0;--mark:#f1efea;color-scheme:light dark}
@media (prefers-color-scheme:dark){:root{--ground:#181817;--card:#20201f;--ink:#e8e5df;--soft:#a19d95;--line:#363532;
--good:#74c493;--warn:#e0aa5a;--bad:#ff8a7f;--bar:#6d7f97;--mark:#2a2a28}}
*{box-sizing:border-box}
body{margin:0;background:var(--ground);color:var(--ink);font:15px/1.55 system-ui,-apple-system,"Segoe UI",sans-serif;
-webkit-text-size-adjust:100%}
main{max-width:1160px;margin:0 auto;padding:40px clamp(16px,4vw,48px) 72px}
.over{color:var(--soft);font-size:13px;letter-spacing:.02em;margin:0 0 4px}
h1{font-size:30px;line-height:1.2;font-weight:650;margin:0 0 8px;overflow-wrap:anywhere}
h2{font-size:19px;line-height:1.3;font-weight:650;margin:0 0 6px}
.verdict{font-size:17px;margin:0 0 28px;overflow-wrap:anywhere}
.verdict::before{content:"";display:inline-block;width:10px;height:10px;border-radius:50%;margin-right:10px;
background:currentColor}
code{font:13px/1.5 ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace;overflow-wrap:anywhere}
dl{display:grid;grid-template-columns:max-content minmax(0,1fr);gap:4px 24px;margin:0 0 28px}
dt{color:var(--soft)}
dd{margin:0;overflow-wrap:anywhere;unicode-bidi:isolate}
.figures{display:grid;grid-template-columns:repeat(auto-fit,minmax(140px,1fr));gap:12px;margin:0 0 40px;padding:0}
.figure{display:block;background:var(--card);border:1px solid var(--line);border-radius:8px;padding:12px 16px 10px;
color:inherit;text-decoration:none}
a.figure:hover,a.figure:focus{border-color:var(--soft)}
.figure b{display:block;font-size:26px;line-height:1.2;font-weight:600;font-variant-numeric:tabular-nums}
.figure span{display:block;color:var(--soft);font-size:13px;line-height:1.35}
section{margin:0 0 44px;scroll-margin-top:16px}
.lead{color:var(--soft);margin:0 0 14px;max-width:72ch;overflow-wrap:anywhere}
.more{color:var(--soft);margin:8px 0 0}
table{width:100%;border-collapse:separate;border-spacing:0;background:var(--card);border:1px solid var(--line);
border-radius:8px;font-size:14px}
th{font-weight:600;color:var(--soft);font-size:13px;text-align:left;white-space:nowrap}
th,td{padding:8px 14px;border-bottom:1px solid var(--line);vertical-align:top}
tr:last-child td{border-bottom:0}
td{unicode-bidi:isolate;overflow-wrap:anywhere;min-width:12ch}
td.c{min-width:20ch}
.n{text-align:right;font-variant-numeric:tabular-nums}
td.n{white-space:nowrap;min-width:0}
.dim{color:var(--soft)}.good{color:var(--good)}.warn{color:var(--warn)}.bad{color:var(--bad);font-weight:600}
.lanes{background:var(--card);border:1px solid var(--line);border-radius:8px;padding:14px 16px 10px}
.lane{display:grid;grid-template-columns:minmax(84px,17%) minmax(0,1fr);gap:14px;align-items:center}
.lane>span{font-size:12px;line-height:20px;color:var(--soft);overflow:hidden;text-overflow:ellipsis;white-space:nowrap;
unicode-bidi:isolate}
.lane svg{display:block;width:100%;height:12px;background:var(--mark);border-radius:2px}
.lane svg.tall{height:44px;margin:4px 0}
.ticks{display:flex;justify-content:space-between;font-size:12px;color:var(--soft);font-variant-numeric:tabular-nums}
.fill-plain,.fill-dim{fill:var(--bar)}.fill-good{fill:var(--good)}.fill-warn{fill:var(--warn)}.fill-bad{fill:var(--bad)}
.key{display:flex;flex-wrap:wrap;gap:4px 18px;margin:10px 0 0;font-size:12px;color:var(--soft)}
.key i{display:inline-block;width:10px;height:10px;border-radius:2px;margin-right:6px}
.key .plain{background:var(--bar)}.key .good{background:var(--good)}.key .warn{background:var(--warn)}
.key .bad{background:var(--bad)}
@media (max-width:1080px){td,td.c{min-width:0;padding:8px 10px}th{padding:8px 10px}}
@media (max-width:900px){
table,tbody,tr,td{display:block}
thead{position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%)}
tr{padding:10px 14px;border-bottom:1px solid var(--line)}
tr:last-child{border-bottom:0}
td,td.n{display:grid;grid-template-columns:104px minmax(0,1fr);gap:12px;padding:2px 0;border:0;text-align:left;
white-space:normal;min-width:0}
td::before{content:attr(data-label);color:var(--soft);font-size:13px;font-weight:400}
td:empty{display:none}
}
@media (max-width:720px){
main{padding-top:24px}
h1{font-size:25px}
dl{grid-template-columns:minmax(0,1fr);gap:0}
dt{font-size:13px;margin-top:8px}
.figures{grid-template-columns:repeat(2,minmax(0,1fr))}
.ticks :nth-child(even){display:none}
}
@media print{body{background:#fff}section{break-inside:avoid-page}}
)css";

}  // namespace firestop::report
