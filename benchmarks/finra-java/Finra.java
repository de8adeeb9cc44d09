package com.openfaas.function;

import com.openfaas.model.IResponse;
import com.openfaas.model.Response;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Function;

/** The request and the answer of each check. */
final class Finra {
    private Finra() {}

    /** Answers the portfolio with `{trade: rule}` of the trades that break a rule; `fault` returns null for others. */
    static IResponse check(
        String name, Map<String, Object> portfolio, Function<Map<String, Object>, String> fault
    ) {
        Map<String, Object> faults = new LinkedHashMap<>();
        for (Map<String, Object> trade : trades(portfolio)) {
            String rule = fault.apply(trade);
            if (rule != null) {
                faults.put((String) trade.get("ExecID"), rule);
            }
        }
        return answer("check", name, "faults", faults);
    }

    @SuppressWarnings("unchecked")
    static List<Map<String, Object>> trades(Map<String, Object> portfolio) {
        return (List<Map<String, Object>>) portfolio.get("trades");
    }

    @SuppressWarnings("unchecked")
    static Map<String, Object> map(Map<String, Object> parent, String name) {
        return (Map<String, Object>) parent.get(name);
    }

    /** The answer of names and values by turns. */
    static IResponse answer(Object... fields) {
        Map<String, Object> named = new LinkedHashMap<>();
        for (int place = 0; place < fields.length; place += 2) {
            named.put((String) fields[place], fields[place + 1]);
        }
        IResponse response = new Response();
        response.setContentType("application/json");
        response.setBody(Json.write(named));
        return response;
    }
}
